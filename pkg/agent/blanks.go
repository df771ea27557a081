package agent

import (
	"strings"
	"sync"
)

// blanks gives texts that stand for those of documents beyond their size: parts of one.
type blanks struct {
	once sync.Once
	text string
}

// largestText is what a ConfigMap can hold.
const largestText = 1 << 20

// Of is a text of a length.
func (b *blanks) Of(length int) string {
	b.once.Do(func() { b.text = strings.Repeat("x", largestText) })
	if length > largestText {
		return strings.Repeat("x", length)
	}
	return b.text[:length]
}
