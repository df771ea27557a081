package http

// MaxValues is how many values an answer's JSON may hold: each costs a hundred bytes and
// more once it is read, and two written (a guess: what is kept of an answer is 64 KiB).
const MaxValues = 20_000

// values is how many values a JSON text holds at most, counted without reading it into
// memory: in a text that is none, it may be any number.
func values(text []byte) int {
	n, quoted := 1, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == ':' || c == '[' || c == '{'):
			n++
		}
	}
	return n
}
