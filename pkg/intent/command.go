package intent

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Unsaid stands in a command for a word that cannot be pasted.
const Unsaid = "…"

// Command is a command line of the plugin about something in a namespace, in quotes: it can
// be pasted wherever an Event, a condition or a message is read. An empty name leaves the
// verb alone.
func Command(namespace, verb, name string) string {
	line := "kubectl maint "
	if namespace != "" {
		line += "-n " + Word(namespace) + " "
	}
	line += verb
	if name != "" {
		line += " " + Word(Question(name))
	}
	return "'" + line + "'"
}

// Question is RUN/STEP, or RUN alone where the step cannot be pasted: it is enough for the only
// question of a run.
func Question(name string) string {
	run, _, isStep := strings.Cut(name, "/")
	if isStep && strings.ContainsFunc(name, unsayable) {
		return run
	}
	return name
}

// Word is a text as one word of a POSIX shell. It is escaped by backslashes and not by quotes, since
// commands stand between single quotes in messages: so it stays one word, and nothing in it is run,
// whether these are pasted too or not. A word with characters that cannot be seen is left out.
func Word(text string) string {
	if text == Unsaid || strings.ContainsFunc(text, unsayable) {
		return Unsaid
	}
	var b strings.Builder
	for _, r := range text {
		if !plain(r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// plain says whether a character means nothing but itself to a shell.
func plain(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || strings.ContainsRune("_./:=@,+-", r)
}

// unsayable says whether a character is not seen, or not what it seems.
func unsayable(r rune) bool {
	return r == utf8.RuneError || !unicode.IsPrint(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// LabelAgain is the command by which a person puts a label of a ConfigMap back.
func LabelAgain(namespace, name, key, value string) string {
	return fmt.Sprintf("'kubectl -n %s label configmap %s %s=%s --overwrite'", Word(namespace), Word(name), key, value)
}
