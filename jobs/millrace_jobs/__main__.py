"""`python -m millrace_jobs`."""

import sys

from millrace_jobs.driver import main

sys.exit(main())
