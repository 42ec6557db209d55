"""What `salon doctor` looks at, a check a function; the command that prints it is flows/commands/doctor.py."""
