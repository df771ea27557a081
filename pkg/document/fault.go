package document

import (
	"fmt"
	"sort"
	"strings"
)

// Fault is one thing wrong with a document, for a person to mend.
type Fault struct {
	Line    int    `json:"line,omitempty"` // 1-based line in the document; 0 where unknown
	Path    string `json:"path"`           // spec.triggers.schedules[0].cron
	Message string `json:"message"`
}

// String is the fault on one line.
func (f Fault) String() string {
	var b strings.Builder
	if f.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", f.Line)
	}
	if f.Path != "" {
		b.WriteString(f.Path + ": ")
	}
	return OneLine(b.String() + f.Message)
}

// Faults are all things wrong with a document, at once.
type Faults []Fault

// Error joins the faults, a line each.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

func (fs Faults) sorted() Faults {
	sort.SliceStable(fs, func(i, j int) bool { return fs[i].Line < fs[j].Line })
	return fs
}

// MaxFaults is how many faults of one document are told (a guess: nobody mends
// more at once).
const MaxFaults = 100

// Limited are the faults in the order of their lines, as many as anybody reads.
func (fs Faults) Limited() Faults {
	fs = fs.sorted()
	if more := len(fs) - MaxFaults; more > 0 {
		fs = append(fs[:MaxFaults:MaxFaults], Fault{Message: fmt.Sprintf("and %d more faults", more)})
	}
	return fs
}

// DidYouMean asks for the candidate that was probably meant by a word, at the end of a
// message; empty where none is near.
func DidYouMean(word string, candidates []string) string {
	if near, ok := Nearest(word, candidates); ok {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// Nearest is the candidate that was probably meant by word, if one is near:
// at most a third of its letters differ.
func Nearest(word string, candidates []string) (string, bool) {
	best, bestDistance := "", len(word)/3+1
	for _, c := range candidates {
		d := editDistance(strings.ToLower(word), strings.ToLower(c))
		if d < bestDistance || (d == bestDistance && best == "") {
			best, bestDistance = c, d
		}
	}
	return best, best != ""
}

// editDistance is Levenshtein's, with one row of memory.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = min(diagonal, row[j], row[j-1]) + 1
			}
			diagonal, row[j] = row[j], cost
		}
	}
	return row[len(b)]
}
