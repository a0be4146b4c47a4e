"""Where results go. Each sink takes the records of a batch and the batch's number in one transaction."""
