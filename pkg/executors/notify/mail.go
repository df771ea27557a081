package notify

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"html"
	"io"
	"mime"
	"mime/multipart"
	"net"
	netsmtp "net/smtp"
	"net/textproto"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nicholas-fedor/shoutrrr/pkg/services/email/smtp"
)

const (
	contentPlain = `text/plain; charset="UTF-8"`
	contentHTML  = `text/html; charset="UTF-8"`
)

// mail sends mails. Its URLs are those of shoutrrr's service smtp, which parses them; the sending
// is our own, since that of smtp executes templates.
type mail struct {
	config *smtp.Config
}

func newMail(u *url.URL, custom bool) (service, error) {
	if custom {
		return nil, errors.New(noCustomURL)
	}
	var library smtp.Service
	if library.Initialize(u, nil) != nil {
		return nil, errors.New(badURL)
	}
	library.Config.FixEmailTags()
	return mail{library.Config}, nil
}

// send sends each recipient a separate mail: when the server refuses one, the others still get
// theirs.
func (m mail) send(what message) error {
	client, err := m.connect()
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	if err := m.greet(client); err != nil {
		return err
	}
	var faults []error
	for _, to := range m.config.ToAddresses {
		if err := m.sendTo(client, to, what); err != nil {
			faults = append(faults, fmt.Errorf("send to %s: %w", to, err))
			_ = client.Reset() // otherwise the server takes the next mail for part of this one
		}
	}
	// Some servers close the connection without a reply; the mails are accepted by then.
	if err := client.Quit(); err != nil && !strings.Contains(err.Error(), "short response") {
		faults = append(faults, fmt.Errorf("end the session: %w", err))
	}
	return errors.Join(faults...)
}

func (m mail) connect() (*netsmtp.Client, error) {
	ctx, cancel := context.WithTimeout(context.Background(), m.config.Timeout)
	defer cancel()
	dial := (&net.Dialer{}).DialContext
	if m.implicitTLS() {
		dial = (&tls.Dialer{Config: m.tls()}).DialContext
	}
	conn, err := dial(ctx, "tcp", net.JoinHostPort(m.config.Host, strconv.Itoa(int(m.config.Port))))
	if err != nil {
		return nil, fmt.Errorf("connect to the mail server: %w", err)
	}
	client, err := netsmtp.NewClient(conn, m.config.Host)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("begin a session with the mail server: %w", err)
	}
	return client, nil
}

// implicitTLS says whether the connection is encrypted from the first byte on.
func (m mail) implicitTLS() bool {
	return m.config.Encryption == smtp.EncImplicitTLS || m.config.Encryption == smtp.EncAuto && m.config.Port == smtp.ImplicitTLSPort
}

func (m mail) tls() *tls.Config {
	return &tls.Config{
		ServerName: m.config.Host, MinVersion: tls.VersionTLS12,
		InsecureSkipVerify: m.config.SkipTLSVerify, //nolint:gosec // the sink's URL asks for it
	}
}

// greet sends our host and logs in, over TLS where the server offers it.
func (m mail) greet(client *netsmtp.Client) error {
	if err := client.Hello(m.clientHost()); err != nil {
		return fmt.Errorf("greet the mail server: %w", err)
	}
	if m.config.UseStartTLS && !m.implicitTLS() {
		switch offered, _ := client.Extension("STARTTLS"); {
		case offered:
			if err := client.StartTLS(m.tls()); err != nil {
				return fmt.Errorf("start TLS: %w", err)
			}
		case m.config.RequireStartTLS:
			return fmt.Errorf("start TLS: %w", smtp.ErrServerNoStartTLS)
		}
	}
	auth, err := m.auth()
	if err != nil || auth == nil {
		return err
	}
	if err := client.Auth(auth); err != nil {
		return fmt.Errorf("log in to the mail server: %w", err)
	}
	return nil
}

func (m mail) clientHost() string {
	if m.config.ClientHost != "auto" {
		return m.config.ClientHost
	}
	host, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return host
}

// auth is the login, or nil where the URL names no user.
func (m mail) auth() (netsmtp.Auth, error) {
	switch m.config.Auth {
	case smtp.AuthNone:
		return nil, nil //nolint:nilnil // no login is no error
	case smtp.AuthPlain:
		return netsmtp.PlainAuth("", m.config.Username, m.config.Password, m.config.Host), nil
	case smtp.AuthCRAMMD5:
		return netsmtp.CRAMMD5Auth(m.config.Username, m.config.Password), nil
	case smtp.AuthOAuth2:
		return smtp.OAuth2Auth(m.config.Username, m.config.Password), nil
	}
	return nil, fmt.Errorf("log in to the mail server: unknown method %s", m.config.Auth)
}

func (m mail) sendTo(client *netsmtp.Client, to string, what message) error {
	if err := client.Mail(m.config.FromAddress); err != nil {
		return fmt.Errorf("name the sender: %w", err)
	}
	if err := client.Rcpt(to); err != nil {
		return fmt.Errorf("name the recipient: %w", err)
	}
	w, err := client.Data()
	if err != nil {
		return fmt.Errorf("begin the mail: %w", err)
	}
	if err := m.write(w, to, what); err != nil {
		return fmt.Errorf("write the mail: %w", err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("end the mail: %w", err)
	}
	return nil
}

// write writes a mail: text, or the same as text and as HTML. Whoever writes a reason writes
// no HTML.
func (m mail) write(w io.Writer, to string, what message) error {
	body := multipart.NewWriter(w)
	contentType := contentPlain
	if m.config.UseHTML {
		contentType = "multipart/alternative; boundary=" + body.Boundary()
	}
	if _, err := fmt.Fprintf(w, "Subject: %s\nX-Maint-Origin: %s\nDate: %s\nTo: %s\nFrom: %s <%s>\nMIME-version: 1.0\nContent-Type: %s\n\n",
		word(what.title), word(what.origin), time.Now().Format(time.RFC1123Z), to, word(m.config.FromName), m.config.FromAddress, contentType); err != nil {
		return err
	}
	if !m.config.UseHTML {
		_, err := io.WriteString(w, what.text)
		return err
	}
	for _, part := range []struct{ contentType, text string }{{contentPlain, what.text}, {contentHTML, "<pre>" + html.EscapeString(what.text) + "</pre>"}} {
		into, err := body.CreatePart(textproto.MIMEHeader{"Content-Type": {part.contentType}})
		if err != nil {
			return err
		}
		if _, err := io.WriteString(into, part.text); err != nil {
			return err
		}
	}
	return body.Close()
}

// word is a text for a header: characters outside of ASCII are encoded.
func word(text string) string { return mime.QEncoding.Encode("UTF-8", text) }
