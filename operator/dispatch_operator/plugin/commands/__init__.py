"""The commands of the plugin: what each asks for is imported when it is called, so that help is at once."""
