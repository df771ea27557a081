package document

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Share is a number of things, or a share of them in per cent.
type Share struct {
	N       int
	Percent bool
}

// ParseShare reads 3, "3" or "10%".
func ParseShare(v any) (Share, error) {
	text := fmt.Sprint(v)
	number, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n > math.MaxInt32 || percent && n > 100 {
		return Share{}, fmt.Errorf("%q is neither a number nor a share: write 3 or 10%%", Cut(text, 50))
	}
	return Share{N: n, Percent: percent}, nil
}

// Up is the share of so many, rounded up.
func (s Share) Up(of int) int {
	if s.Percent {
		return (of*s.N + 99) / 100
	}
	return s.N
}

// Down is the share of so many, rounded down.
func (s Share) Down(of int) int {
	if s.Percent {
		return of * s.N / 100
	}
	return s.N
}

// String is the share as it is written.
func (s Share) String() string {
	if s.Percent {
		return strconv.Itoa(s.N) + "%"
	}
	return strconv.Itoa(s.N)
}
