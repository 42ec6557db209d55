"""Publish: cells to immutable folders, what people read of them, and the way back to the replies. Means are made in aggregate."""
