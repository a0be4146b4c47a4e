"""The lag observer: tells from the broker alone how far behind every job is, also when the job hangs or is dead."""
