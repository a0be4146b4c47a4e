"""The one exception whose text is shown to a person as it is: a sentence that says what happened and what to do."""


class UserError(Exception):
    """Something that the person at the keyboard can put right. Never shown with a stack trace."""
