package intent

// Command is a command line of the plugin about something in a namespace, in quotes: it can
// be pasted wherever an Event, a condition or a message is read. An empty name leaves the
// verb alone.
func Command(namespace, verb, name string) string {
	line := "kubectl maint "
	if namespace != "" {
		line += "-n " + namespace + " "
	}
	line += verb
	if name != "" {
		line += " " + name
	}
	return "'" + line + "'"
}
