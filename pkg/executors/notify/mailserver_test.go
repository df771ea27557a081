package notify

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/md5" //nolint:gosec // CRAM-MD5 has it
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http/httptest"
	netmail "net/mail"
	"net/textproto"
	"strings"
	"sync"
	"testing"
)

const (
	mailUser, mailPassword = "u5er", "pa+ss word"
	mailChallenge          = "<1896.697170952@example.org>"
)

// letter is a mail as its server understood it.
type letter struct {
	Hello, Login, From, To string
	TLS                    bool
	Headers                map[string]string // without Date, and without the boundary of the parts
	Parts                  []string          // each with its content type, or the whole text
}

// mailServer takes mails as strictly as Postfix: no mail begins within another.
type mailServer struct {
	implicitTLS, startTLS, refuseStartTLS bool
	goodbye                               string // instead of "221 bye"

	listener net.Listener
	config   *tls.Config
	gate     sync.Mutex // no session begins while somebody waits for those that are open
	open     sync.WaitGroup
	mu       sync.Mutex
	letters  []letter
	faults   []string // what clients did wrong
}

func (s *mailServer) settle() {
	s.gate.Lock()
	defer s.gate.Unlock()
	s.open.Wait()
}

func (s *mailServer) start(t *testing.T) *mailServer {
	t.Helper()
	web := httptest.NewTLSServer(nil) // for its certificate, which nobody trusts
	s.config = &tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12}
	web.Close()
	var err error
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := s.listener.Accept()
			if err != nil {
				return
			}
			stop := context.AfterFunc(t.Context(), func() { _ = conn.Close() }) // shoutrrr leaves sessions open that failed
			s.gate.Lock()
			s.open.Go(func() {
				defer stop()
				s.serve(conn)
			})
			s.gate.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = s.listener.Close()
		s.settle()
	})
	return s
}

// received are the mails since it was asked last, once every session has ended.
func (s *mailServer) received() []letter {
	s.settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.letters = nil }()
	return s.letters
}

// session is one connection to the server.
type session struct {
	*mailServer
	conn   net.Conn
	in     *textproto.Reader
	letter letter
}

func (s *mailServer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	one := &session{mailServer: s}
	if s.implicitTLS {
		conn = tls.Server(conn, s.config)
		one.letter.TLS = true
	}
	one.use(conn)
	one.say("220 mail.example.org ESMTP")
	for {
		line, err := one.in.ReadLine()
		if err != nil || !one.answer(line) {
			return
		}
	}
}

func (s *session) use(conn net.Conn) {
	s.conn, s.in = conn, textproto.NewReader(bufio.NewReader(conn))
}

func (s *session) say(line string) { _, _ = io.WriteString(s.conn, line+"\r\n") }

// answer answers one command, and says whether the session goes on.
func (s *session) answer(line string) bool {
	verb, rest, _ := strings.Cut(line, " ")
	switch strings.ToUpper(verb) {
	case "EHLO":
		s.letter.Hello = rest
		s.say("250-mail.example.org\r\n250-8BITMIME\r\n250-AUTH PLAIN CRAM-MD5 XOAUTH2")
		if s.startTLS && !s.letter.TLS {
			s.say("250-STARTTLS")
		}
		s.say("250 HELP")
	case "STARTTLS":
		if s.refuseStartTLS {
			s.say("454 not now")
			return true
		}
		s.say("220 go ahead")
		s.use(tls.Server(s.conn, s.config))
		s.letter.TLS = true
	case "AUTH":
		s.login(rest)
	case "MAIL":
		if s.letter.From != "" {
			s.fault("503 nested MAIL command")
			return true
		}
		s.letter.From = address(rest)
		s.say("250 ok")
	case "RCPT":
		if strings.Contains(rest, "refused@") {
			s.say("550 no such user")
			return true
		}
		s.letter.To = address(rest)
		s.say("250 ok")
	case "DATA":
		s.say("354 go ahead")
		s.take()
	case "RSET":
		s.letter.From, s.letter.To = "", ""
		s.say("250 ok")
	case "QUIT":
		if s.goodbye == "" {
			s.goodbye = "221 bye"
		}
		s.say(s.goodbye)
		return false
	default:
		s.fault("502 unknown command " + verb)
	}
	return true
}

func (s *session) fault(answer string) {
	s.mu.Lock()
	s.faults = append(s.faults, answer)
	s.mu.Unlock()
	s.say(answer)
}

func address(rest string) string {
	_, rest, _ = strings.Cut(rest, "<")
	text, _, _ := strings.Cut(rest, ">")
	return text
}

func (s *session) login(rest string) {
	method, initial, _ := strings.Cut(rest, " ")
	given, _ := base64.StdEncoding.DecodeString(initial)
	want := ""
	switch method {
	case "PLAIN":
		want = "\x00" + mailUser + "\x00" + mailPassword
	case "XOAUTH2":
		want = "user=" + mailUser + "\x01auth=Bearer " + mailPassword + "\x01\x01"
	case "CRAM-MD5":
		s.say("334 " + base64.StdEncoding.EncodeToString([]byte(mailChallenge)))
		line, _ := s.in.ReadLine()
		given, _ = base64.StdEncoding.DecodeString(line)
		sum := hmac.New(md5.New, []byte(mailPassword))
		sum.Write([]byte(mailChallenge))
		want = mailUser + " " + hex.EncodeToString(sum.Sum(nil))
	}
	if string(given) != want {
		s.say("535 wrong user or password")
		return
	}
	s.letter.Login = method
	s.say("235 welcome")
}

// take reads a mail and understands it.
func (s *session) take() {
	message, err := netmail.ReadMessage(bufio.NewReader(s.in.DotReader()))
	if err != nil {
		s.fault("554 this is no mail: " + err.Error())
		return
	}
	one := s.letter
	if _, err := message.Header.Date(); err != nil {
		s.fault("554 the mail has no date: " + err.Error())
		return
	}
	one.Headers = map[string]string{}
	for key, values := range message.Header {
		if key != "Date" {
			one.Headers[key] = strings.Join(values, "\n")
		}
	}
	kind, params, _ := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if strings.HasPrefix(kind, "multipart/") {
		one.Headers["Content-Type"] = kind
		parts := multipart.NewReader(message.Body, params["boundary"])
		for part, err := parts.NextPart(); err == nil; part, err = parts.NextPart() {
			text, _ := io.ReadAll(part)
			one.Parts = append(one.Parts, part.Header.Get("Content-Type")+"\n"+strings.TrimSpace(string(text)))
		}
	} else {
		text, _ := io.ReadAll(message.Body)
		one.Parts = []string{strings.TrimSpace(string(text))}
	}
	s.mu.Lock()
	s.letters = append(s.letters, one)
	s.mu.Unlock()
	s.letter.From, s.letter.To = "", ""
	s.say("250 ok")
}
