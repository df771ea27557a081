package http

// MaxValues is how many values the JSON of an answer may hold: each takes two bytes in the text,
// but a hundred and more once it is read (a guess: 64 KiB of an answer are kept).
const MaxValues = 20_000

// values is an upper bound of the number of values in a JSON text, counted without decoding it; for
// text that is not JSON it means nothing.
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
