package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// source is what a package says beside its types: comments, and the values that
// its constants give a type.
type source struct {
	comments map[string]string   // "Spec", "Webhook.Method"
	values   map[string][]string // type name: its constants' strings, in order
	rooms    map[string]bool     // the packages that the values are of
}

// readRooms reads the packages that hold the documents. Of a name that several have,
// the first counts.
func readRooms(dir string, rooms ...string) (source, error) {
	all := source{comments: map[string]string{}, values: map[string][]string{}, rooms: map[string]bool{}}
	for _, room := range rooms {
		s, err := readSource(filepath.Join(dir, room))
		if err != nil {
			return all, err
		}
		all = all.with(s)
		all.rooms[room] = true
		for name, values := range s.values {
			if all.values[name] == nil {
				all.values[name] = values
			}
		}
	}
	return all, nil
}

// with adds what another package says of names that this one has not.
func (s source) with(other source) source {
	out := source{comments: maps.Clone(other.comments), values: s.values, rooms: s.rooms}
	maps.Copy(out.comments, s.comments)
	return out
}

func readSource(dir string) (source, error) {
	s := source{comments: map[string]string{}, values: map[string][]string{}}
	files, err := goFiles(dir)
	if err != nil {
		return s, fmt.Errorf("read %s: %w", dir, err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return s, fmt.Errorf("read the comments of %s: %w", path, err)
		}
		for _, declaration := range file.Decls {
			if d, ok := declaration.(*ast.GenDecl); ok {
				s.declaration(d)
			}
		}
	}
	return s, nil
}

func (s source) declaration(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			s.typeSpec(d, spec)
		case *ast.ValueSpec:
			s.valueSpec(spec)
		}
	}
}

func (s source) typeSpec(d *ast.GenDecl, t *ast.TypeSpec) {
	doc := t.Doc
	if doc == nil {
		doc = d.Doc
	}
	s.comments[t.Name.Name] = oneLine(doc.Text())
	structure, ok := t.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, field := range structure.Fields.List {
		text := field.Doc.Text()
		if text == "" {
			text = field.Comment.Text()
		}
		for _, name := range field.Names {
			s.comments[t.Name.Name+"."+name.Name] = oneLine(text)
		}
	}
}

// valueSpec notes the constants of a named string type: they are its values.
func (s source) valueSpec(v *ast.ValueSpec) {
	name, ok := v.Type.(*ast.Ident)
	if !ok {
		return
	}
	for _, value := range v.Values {
		literal, ok := value.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			continue
		}
		if text, err := strconv.Unquote(literal.Value); err == nil && !slices.Contains(s.values[name.Name], text) {
			s.values[name.Name] = append(s.values[name.Name], text)
		}
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// comment is jsonschema's LookupComment: of a type, or of one of its fields.
func (s source) comment(t reflect.Type, field string) string {
	if field != "" {
		return s.comments[t.Name()+"."+field]
	}
	return s.comments[t.Name()]
}

// goFiles are a package's files, without its tests.
func goFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out, nil
}
