package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/nicholas-fedor/shoutrrr/pkg/services/specialized/generic"
)

// maxAnswer is how much of a webhook's answer is read, so that the connection can be reused. The
// answer is shown to nobody.
const maxAnswer = 64 << 10

// webhook posts a message as text or JSON. Its URLs are those of shoutrrr's service generic, which
// parses them; the sending is our own, since that of generic executes templates.
type webhook struct {
	config  *generic.Config
	headers http.Header
	extra   map[string]string // fields of the JSON besides title and message
}

func newWebhook(u *url.URL, custom bool) (service, error) {
	var library generic.Service
	if custom {
		var err error
		if u, err = library.GetConfigURLFromCustom(u); err != nil {
			return nil, errors.New(badCustomURL)
		}
	}
	if library.Initialize(u, nil) != nil {
		return nil, errors.New(badURL)
	}
	w := webhook{config: library.Config, headers: http.Header{}, extra: map[string]string{}}
	// The configuration has these only in its own URL.
	for key, values := range library.Config.GetURL().Query() {
		switch {
		case len(key) < 2:
		case key[0] == generic.HeaderPrefixChar:
			w.headers.Set(key[1:], values[0])
		case key[0] == generic.ExtraPrefixChar:
			w.extra[key[1:]] = values[0]
		}
	}
	return w, nil
}

func (w webhook) send(m message) error {
	if err := w.post(m); err != nil {
		return fmt.Errorf("%w: %w", generic.ErrSendFailed, err)
	}
	return nil
}

func (w webhook) post(m message) error {
	payload, contentType, err := w.payload(m)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(context.Background(), w.config.RequestMethod, w.config.WebhookURL().String(), bytes.NewReader(payload))
	if err != nil {
		return fmt.Errorf("create the request: %w", err)
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Accept", contentType)
	for key, values := range w.headers {
		req.Header[key] = values
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("send the request: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer))
	if res.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%w: %s", generic.ErrUnexpectedStatus, res.Status)
	}
	return nil
}

// payload is the message in the format of the URL's template, and its content type. Text, and JSON with
// one key for both, have no separate place for a title.
func (w webhook) payload(m message) ([]byte, string, error) {
	switch w.config.Template {
	case "":
		return []byte(m.withTitle()), "text/plain", nil
	case "json", generic.JSONTemplate:
		fields := map[string]string{w.config.MessageKey: m.withTitle()}
		if w.config.TitleKey != w.config.MessageKey {
			fields = map[string]string{"origin": m.origin}
			fields[w.config.TitleKey], fields[w.config.MessageKey] = m.title, m.text
		}
		for key, value := range w.extra {
			fields[key] = value
		}
		b, err := json.Marshal(fields)
		return b, w.config.ContentType, err
	}
	return nil, "", fmt.Errorf("%w: %q", generic.ErrTemplateNotLoaded, w.config.Template)
}
