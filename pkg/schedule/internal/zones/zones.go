// Package zones holds the time zones of the IANA database, as they are built into both programs.
package zones

import (
	"archive/zip"
	_ "embed" // the zone archive
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"sync"
	"time"
)

//go:generate go run ../zonegen

//go:embed zoneinfo.zip
var zipped string

// embedded is the archive, indexed on first use. It is a memo of constant data: nothing that is
// put into it can change what anybody reads.
var embedded = sync.OnceValue(openArchive) //nolint:gochecknoglobals // memo of embedded constant data

// Names lists the names of all zones, sorted.
func Names() []string { return append([]string(nil), embedded().names...) }

// Load reads a zone by its name. A name that is none is an *UnknownError.
func Load(name string) (*time.Location, error) { return embedded().read(name) }

// UnknownError is the name of no zone; its text goes on from the name, and suggests the
// nearest, which are looked for when it is asked for.
type UnknownError struct{ name string }

func (e *UnknownError) Error() string {
	message := "is not a time zone of the IANA database " + Version
	if near := embedded().nearest(e.name); len(near) > 0 {
		return message + "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return message + `; write an IANA name such as "Europe/Berlin" or "UTC"`
}

type archive struct {
	names []string
	files map[string]*zip.File
}

func openArchive() *archive {
	reader, err := zip.NewReader(strings.NewReader(zipped), int64(len(zipped)))
	if err != nil {
		panic(fmt.Sprintf("the embedded zone archive is unreadable: %v", err)) // cannot happen in a build that passed its tests
	}
	a := &archive{files: make(map[string]*zip.File, len(reader.File))}
	for _, file := range reader.File {
		if isZoneName(file.Name) {
			a.files[file.Name] = file
			a.names = append(a.names, file.Name)
		}
	}
	sort.Strings(a.names)
	return a
}

// isZoneName leaves out what is in some archives without being a place: a
// schedule in Factory time or in leap-second time is a mistake.
func isZoneName(name string) bool {
	switch name {
	case "Factory", "Local", "localtime", "posixrules":
		return false
	}
	return !strings.HasSuffix(name, "/") && !strings.HasPrefix(name, "posix/") && !strings.HasPrefix(name, "right/")
}

func (a *archive) read(name string) (*time.Location, error) {
	file, ok := a.files[name]
	if !ok {
		return nil, &UnknownError{name}
	}
	reader, err := file.Open()
	if err != nil {
		return nil, fmt.Errorf("open zone %s: %w", name, err)
	}
	data, err := io.ReadAll(reader)
	if err := errors.Join(err, reader.Close()); err != nil {
		return nil, fmt.Errorf("read zone %s: %w", name, err)
	}
	location, err := time.LoadLocationFromTZData(name, data)
	if err != nil {
		return nil, fmt.Errorf("decode zone %s: %w", name, err)
	}
	if name == "UTC" {
		return time.UTC, nil
	}
	return location, nil
}

// nearest finds up to three names that differ from name by case, by a missing
// region, or by few letters.
func (a *archive) nearest(name string) []string {
	type candidate struct {
		name string
		far  int
	}
	wanted := plainZoneName(name)
	if wanted == "" || len(wanted) > 64 {
		return nil
	}
	var near []candidate
	for _, known := range a.names {
		if len(wanted)-len(known) > 1+len(wanted)/5 {
			continue // too far by its length alone
		}
		far := editDistance(wanted, plainZoneName(known))
		if city := plainZoneName(known[strings.LastIndexByte(known, '/')+1:]); city != plainZoneName(known) {
			far = min(far, 1+editDistance(wanted, city))
		}
		if far <= 1+len(wanted)/5 {
			near = append(near, candidate{known, far})
		}
	}
	sort.SliceStable(near, func(i, j int) bool { return near[i].far < near[j].far })
	var names []string
	for _, c := range near {
		if len(names) == 3 || c.far > near[0].far {
			break
		}
		names = append(names, c.name)
	}
	return names
}

func plainZoneName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' {
			return '_'
		}
		return r
	}, strings.ToLower(strings.TrimSpace(name)))
}

// editDistance counts the letters to insert, delete, replace or swap with the
// neighbour.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
