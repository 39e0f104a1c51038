"""Every address and what it answers: pages.py and live_pages.py, events.py, system.py."""
