package document

import (
	"fmt"
	"strings"
)

// Few are names in a sentence, at most so many of them: "a, b and 3 more".
func Few(names []string, most int) string {
	if n := len(names) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n)
	}
	return strings.Join(names, ", ")
}
