"""Every address and what it answers: pages.py and page_routes.py, prompt_form.py, events.py, system.py."""
