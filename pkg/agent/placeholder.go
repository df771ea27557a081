package agent

import (
	"strings"
	"sync"
)

// placeholder gives texts that stand for those of documents beyond their size: parts of one.
type placeholder struct {
	once sync.Once
	text string
}

// largestText is what a ConfigMap can hold.
const largestText = 1 << 20

// Of is a text of a length.
func (p *placeholder) Of(length int) string {
	p.once.Do(func() { p.text = strings.Repeat("x", largestText) })
	if length > largestText {
		return strings.Repeat("x", length)
	}
	return p.text[:length]
}
