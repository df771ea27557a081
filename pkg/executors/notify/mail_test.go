package notify

import (
	"mime"
	"net/url"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// mailLogin comes before the host in a mail sink's URL.
const mailLogin = mailUser + ":pa%2Bss%20word@"

func TestAMailIsWhatItIsForTheRouter(t *testing.T) {
	for name, c := range map[string]struct {
		server *mailServer
		login  string
		query  string
		want   letter // what matters of the first: the rest is compared with the router's
	}{
		"from one to one":                 {query: "from=a@example.org&to=b@example.org", want: letter{Hello: "localhost", From: "a@example.org", To: "b@example.org"}},
		"to two":                          {query: "from=a@example.org&to=b@example.org,c@example.org", want: letter{To: "b@example.org"}},
		"by the long names":               {query: "fromAddress=a@example.org&toAddresses=b@example.org,c@example.org&fromName=Night+shift&subject=Mine", want: letter{To: "b@example.org"}},
		"to an address with a tag":        {query: "from=a@example.org&to=b+tag@example.org", want: letter{To: "b+tag@example.org"}},
		"as HTML":                         {query: "from=a@example.org&to=b@example.org&usehtml=yes", want: letter{To: "b@example.org"}},
		"from another host":               {query: "from=a@example.org&to=b@example.org&clienthost=agent.example.org", want: letter{Hello: "agent.example.org"}},
		"from this host":                  {query: "from=a@example.org&to=b@example.org&clienthost=auto"},
		"with a login":                    {login: mailLogin, query: "from=a@example.org&to=b@example.org", want: letter{Login: "PLAIN"}},
		"with a login by name":            {login: mailLogin, query: "from=a@example.org&to=b@example.org&auth=plain", want: letter{Login: "PLAIN"}},
		"with a challenge":                {login: mailLogin, query: "from=a@example.org&to=b@example.org&auth=CRAMMD5", want: letter{Login: "CRAM-MD5"}},
		"with a token":                    {login: mailLogin, query: "from=a@example.org&to=b@example.org&auth=OAuth2", want: letter{Login: "XOAUTH2"}},
		"with a user who does not login":  {login: mailLogin, query: "from=a@example.org&to=b@example.org&auth=None"},
		"encrypted where it can be":       {server: &mailServer{startTLS: true}, login: mailLogin, query: "from=a@example.org&to=b@example.org&skiptlsverify=yes", want: letter{TLS: true, Login: "PLAIN"}},
		"encrypted where it has to be":    {server: &mailServer{startTLS: true}, query: "from=a@example.org&to=b@example.org&skiptlsverify=yes&requirestarttls=yes", want: letter{TLS: true}},
		"encryption None still starts it": {server: &mailServer{startTLS: true}, query: "from=a@example.org&to=b@example.org&skiptlsverify=yes&encryption=None", want: letter{TLS: true}},
		"in the clear where asked":        {server: &mailServer{startTLS: true}, query: "from=a@example.org&to=b@example.org&starttls=no"},
		"encrypted from the first byte":   {server: &mailServer{implicitTLS: true}, login: mailLogin, query: "from=a@example.org&to=b@example.org&encryption=ImplicitTLS&skiptlsverify=yes&timeout=5s", want: letter{TLS: true, Login: "PLAIN"}},
		"no other encryption within it":   {server: &mailServer{implicitTLS: true}, query: "from=a@example.org&to=b@example.org&encryption=ImplicitTLS&skiptlsverify=yes&requirestarttls=yes", want: letter{TLS: true}},
		"a server of few words":           {server: &mailServer{goodbye: "2"}, query: "from=a@example.org&to=b@example.org"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.server == nil {
				c.server = &mailServer{}
			}
			s := c.server.start(t)
			u := "smtp://" + c.login + s.listener.Addr().String() + "/?" + c.query
			if err := byRouter(u, "Upgrade", "it begins\n.\n<b> é"); err != nil {
				t.Fatalf("by the router: %v", err)
			}
			want := s.received()
			for _, one := range want { // the router takes the message for HTML, and does not know who speaks
				one.Headers["X-Maint-Origin"] = "agent"
				for i, part := range one.Parts {
					one.Parts[i] = strings.Replace(part, "<b> é</pre>", "&lt;b&gt; é</pre>", 1)
				}
			}
			if err := deliver(u, message{origin: "agent", title: "Upgrade", text: "it begins\n.\n<b> é"}); err != nil {
				t.Fatal(err)
			}
			got := s.received()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-router's +ours):\n%s", diff)
			}
			if first := got[0]; first.TLS != c.want.TLS || first.Login != c.want.Login || !strings.HasPrefix(first.Hello, c.want.Hello) || !strings.HasPrefix(first.To, c.want.To) {
				t.Errorf("%+v, want %+v", first, c.want)
			}
			if len(s.faults) > 0 {
				t.Error(s.faults)
			}
		})
	}
}

func TestAMailThatIsNotSentForTheRouterEither(t *testing.T) {
	for name, c := range map[string]struct {
		server *mailServer
		login  string
		query  string
		says   string
	}{
		"a certificate that nobody signed":       {server: &mailServer{startTLS: true}, says: "start TLS: tls: failed to verify certificate"},
		"the same, from the first byte":          {server: &mailServer{implicitTLS: true}, query: "&encryption=ImplicitTLS", says: "connect to the mail server: tls: failed to verify certificate"},
		"no encryption where it has to be":       {query: "&requirestarttls=yes", says: "server does not support StartTLS"},
		"encryption that is offered and refused": {server: &mailServer{startTLS: true, refuseStartTLS: true}, says: "start TLS: 454"},
		"a wrong password":                       {login: mailUser + ":no@", says: "log in to the mail server: 535"},
		"a sender that breaks the line":          {query: "&from=a%0D%0ARCPT+TO:c@example.org", says: "CR or LF"},
		"a recipient who is refused":             {query: "&to=refused@example.org", says: "name the recipient: 550"},
		"a server that does not say goodbye":     {server: &mailServer{goodbye: "421 busy"}, says: "end the session: 421"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.server == nil {
				c.server = &mailServer{}
			}
			s := c.server.start(t)
			query, err := url.ParseQuery("from=a@example.org&to=b@example.org")
			if err != nil {
				t.Fatal(err)
			}
			more, err := url.ParseQuery(c.query)
			if err != nil {
				t.Fatal(err)
			}
			for key, values := range more {
				query[key] = values
			}
			u := "smtp://" + c.login + s.listener.Addr().String() + "/?" + query.Encode()
			if err := byRouter(u, "Upgrade", "it begins"); err == nil {
				t.Error("the router sends it")
			}
			if err := deliver(u, message{title: "Upgrade", text: "it begins"}); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

func TestARecipientWhoIsRefusedKeepsNoOtherFromBeingTold(t *testing.T) {
	s := (&mailServer{}).start(t)
	err := deliver("smtp://"+s.listener.Addr().String()+"/?from=a@example.org&to=refused@example.org,b@example.org", message{title: "Upgrade", text: "it begins"})
	if err == nil || !strings.Contains(err.Error(), "550") {
		t.Error(err)
	}
	if got := s.received(); len(got) != 1 || got[0].To != "b@example.org" || len(s.faults) > 0 {
		t.Errorf("%+v, %v", got, s.faults)
	}
}

func TestAMailThatFailsLeavesNoSessionOpen(t *testing.T) {
	s := (&mailServer{}).start(t)
	if err := deliver("smtp://"+s.listener.Addr().String()+"/?from=a@example.org&to=b@example.org&requirestarttls=yes", message{title: "Upgrade", text: "it begins"}); err == nil {
		t.Error("it was sent")
	}
	if got := s.received(); len(got) != 0 { // it waits for the end of every session
		t.Errorf("%+v", got)
	}
}

func TestAHeaderHoldsAnyText(t *testing.T) {
	s := (&mailServer{}).start(t)
	title, name := "Größeres Update – "+strings.Repeat("é", 60), "Schicht 夜\r\nBcc: c@example.org"
	u := "smtp://" + s.listener.Addr().String() + "/?from=a+tag@example.org&to=b@example.org&fromname=" + url.QueryEscape(name)
	if err := deliver(u, message{origin: "plan shop/orders", title: title, text: "it begins"}); err != nil {
		t.Fatal(err)
	}
	got := s.received()
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	want := map[string]string{"Subject": title, "From": name + " <a+tag@example.org>", "To": "b@example.org", "X-Maint-Origin": "plan shop/orders", "Mime-Version": "1.0", "Content-Type": contentPlain}
	for key, value := range got[0].Headers {
		if strings.ContainsFunc(value, func(r rune) bool { return r >= unicode.MaxASCII }) {
			t.Errorf("%s is not ASCII: %s", key, value)
		}
		text, err := new(mime.WordDecoder).DecodeHeader(value)
		if err != nil {
			t.Error(err)
		}
		got[0].Headers[key] = text
	}
	if diff := cmp.Diff(want, got[0].Headers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhichMailsAreEncryptedFromTheFirstByte(t *testing.T) {
	for address, want := range map[string]bool{
		"mail.example.org/?encryption=Auto":            false,
		"mail.example.org:465/?encryption=Auto":        true,
		"mail.example.org:465/?starttls=yes":           true,
		"mail.example.org:465/?encryption=None":        false,
		"mail.example.org:465/?encryption=ExplicitTLS": false,
		"mail.example.org:587/?encryption=ImplicitTLS": true,
		"mail.example.org:587/?encryption=ExplicitTLS": false,
	} {
		got, err := locate("smtp://" + address + "&from=a@example.org&to=b@example.org")
		if err != nil {
			t.Fatal(err)
		}
		if got.(mail).implicitTLS() != want {
			t.Errorf("%s: %t, want %t", address, !want, want)
		}
	}
}
