"""What users write and read: settings, commands, what is shown, events for programs, exit statuses."""
