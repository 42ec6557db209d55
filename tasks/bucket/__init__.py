"""The bucket behind a lake: its address, requests to it, and the working folder that stands before it. Tables are store.py's."""
