package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// StrictJSON reads one JSON value into what encoding/json makes of it, with numbers as
// json.Number. Unlike there, a key that appears twice is an error.
func StrictJSON(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	value, err := strictValue(d)
	if err != nil {
		return nil, err
	}
	switch _, err := d.Token(); {
	case err == nil:
		return nil, errors.New("something follows the value")
	case err != io.EOF: //nolint:errorlint // as Token gives it
		return nil, err
	}
	return value, nil
}

func strictValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, unexpectedEnd(err)
	}
	switch token {
	case json.Delim('{'):
		return strictObject(d)
	case json.Delim('['):
		list := []any{}
		for d.More() {
			item, err := strictValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err := d.Token()
		return list, unexpectedEnd(err)
	}
	return token, nil
}

func strictObject(d *json.Decoder) (any, error) {
	object := map[string]any{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, unexpectedEnd(err)
		}
		key, _ := token.(string)
		if _, twice := object[key]; twice {
			return nil, fmt.Errorf("%q appears twice", Cut(key, 80))
		}
		if object[key], err = strictValue(d); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return object, unexpectedEnd(err)
}

func unexpectedEnd(err error) error {
	if err == io.EOF { //nolint:errorlint // as Token gives it
		return io.ErrUnexpectedEOF
	}
	return err
}

// JSONObject reads a JSON object of so many bytes at most; an empty text is one with nothing in it.
// example is shown to whoever wrote something else.
func JSONObject(text string, most int, example string) (map[string]any, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return map[string]any{}, nil
	case len(text) > most:
		return nil, fmt.Errorf("it has %d bytes; at most %d are allowed", len(text), most)
	}
	value, err := StrictJSON(text)
	if err != nil {
		return nil, fmt.Errorf("this is no JSON: %w", err)
	}
	object, is := value.(map[string]any)
	if !is {
		return nil, fmt.Errorf("must be a JSON object like %s, is %s", example, Cut(text, 80))
	}
	return object, nil
}

// DropNulls takes out of an object, and of the objects in it, the keys whose value is null:
// so they count as absent. It leaves lists as they are.
func DropNulls(object map[string]any) {
	for key, v := range object {
		switch v := v.(type) {
		case nil:
			delete(object, key)
		case map[string]any:
			DropNulls(v)
		}
	}
}
