package notify

import (
	"io"
	nethttp "net/http"
	"strings"
	"testing"
)

func TestAWebhookSendsWhatItSendsForTheRouter(t *testing.T) {
	w := newWeb(t)
	for name, query := range map[string]string{
		"text":                        "",
		"text with a query":           "a=1&b=2&b=3",
		"text with extra data":        "$level=info",
		"text of another method":      "method=PUT",
		"JSON":                        "template=json",
		"JSON in capitals":            "template=JSON",
		"JSON with keys":              "template=json&titlekey=subject&messagekey=text",
		"JSON of one key":             "template=json&titlekey=text&messagekey=text",
		"JSON with extra data":        "template=json&$level=info&$who=a+b",
		"extra data over the message": "template=json&$message=mine&$title=mine",
		"another content type":        "template=json&contenttype=application/vnd.api%2Bjson",
		"headers":                     "@authorization=Bearer+t0ken&@X-Own=a&@acceptLanguage=de",
		"a header of our own":         "template=json&@content-type=text/x&@accept=text/y",
		"a query like our options":    "__title=theirs&__method=theirs&title=ours",
		"keys of one letter":          "@=a&$=b&template=json",
		"a title in the URL":          "template=json&title=theirs",
		"letters outside of ASCII":    "template=json&$ä=ö&ü=ß",
	} {
		t.Run(name, func(t *testing.T) {
			host := strings.TrimPrefix(w.URL, "http://")
			sendsTheSame(t, w, "generic+http://"+host+"/hook?"+query)
			sendsTheSame(t, w, "generic+https://example.org/hook?"+query)
			sendsTheSame(t, w, "generic://user:password@"+host+"/hook/%20a?disabletls=yes&"+query)
		})
	}
}

func TestAWebhookThatIsNotSentForTheRouterEither(t *testing.T) {
	d := newDesk(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		switch r.URL.Path {
		case "/not-modified":
			w.WriteHeader(nethttp.StatusNotModified)
		case "/gone":
			w.WriteHeader(nethttp.StatusGone)
		case "/long":
			_, _ = io.WriteString(w, strings.Repeat("x", 2*maxAnswer))
		}
	})
	for name, c := range map[string]struct{ url, says string }{
		"a template that nobody loaded": {d.sink("/?template=mine"), `template has not been loaded: "mine"`},
		"a method that is none":         {d.sink("/?method=a+b"), "invalid method"},
		"a header that is none":         {d.sink("/?@a+b=c"), "invalid header field name"},
		"an answer that says no":        {d.sink("/gone"), "410 Gone"},
		"an answer in between":          {d.sink("/not-modified"), ""},
		"a long answer":                 {d.sink("/long"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			want, got := byRouter(c.url, "Upgrade", "it begins"), deliver(c.url, message{title: "Upgrade", text: "it begins"})
			if (want == nil) != (got == nil) || got != nil && !strings.Contains(got.Error(), c.says) {
				t.Errorf("the router says %v, ours %v, want %q", want, got, c.says)
			}
		})
	}
}
