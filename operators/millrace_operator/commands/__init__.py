"""The operator's part of the `millrace` command line: `plan` and `explain`. They read the cluster and write nothing."""
