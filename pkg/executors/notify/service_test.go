package notify

import (
	"fmt"
	"html"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nicholas-fedor/shoutrrr/pkg/format"
	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
)

// byRouter tells a sink as shoutrrr's router does it: ours are compared with it. A service that shows no
// title has it in its text, Slack's is escaped, and JSON says who speaks.
func byRouter(rawURL, title, text string) error {
	var r router.ServiceRouter
	if strings.HasPrefix(rawURL, "generic") && !strings.Contains(rawURL, "titlekey=text&messagekey=text") {
		rawURL = strings.NewReplacer("template=json", "template=json&$origin=agent", "template=JSON", "template=JSON&$origin=agent").Replace(rawURL)
	}
	s, err := r.Locate(rawURL)
	if err != nil {
		return err
	}
	params := types.Params{}
	titled := slices.Contains(new(format.NewPropKeyResolver(format.GetServiceConfig(s))).QueryFields(), types.TitleKey)
	shown := titled
	switch s.GetID() {
	case "ifttt", "matrix", "mattermost", "zulip":
		shown = false
	case "generic":
		titled = strings.Contains(rawURL, "template=")
		shown = titled && !strings.Contains(rawURL, "titlekey=text&messagekey=text")
	case "slack":
		text = html.EscapeString(text)
		text = strings.ReplaceAll(text, "&#34;", `"`)
	}
	if titled {
		params.SetTitle(title)
	}
	if !shown {
		text = title + "\n" + text
	}
	return s.Send(text, &params)
}

// web stands for every server that is asked by HTTP: those that services name themselves,
// and the one at its address.
type web struct {
	*httptest.Server
	mu  sync.Mutex
	got []string
}

func newWeb(t *testing.T) *web {
	t.Helper()
	w := &web{}
	w.Server = httptest.NewServer(nethttp.HandlerFunc(func(rw nethttp.ResponseWriter, r *nethttp.Request) {
		_, _ = io.WriteString(rw, w.take(r))
	}))
	before := nethttp.DefaultTransport
	nethttp.DefaultTransport = w
	t.Cleanup(func() {
		nethttp.DefaultTransport = before
		w.Close()
	})
	return w
}

// RoundTrip answers in place of the network.
func (w *web) RoundTrip(r *nethttp.Request) (*nethttp.Response, error) {
	answer := httptest.NewRecorder()
	_, _ = io.WriteString(answer, w.take(r))
	return answer.Result(), nil
}

// take keeps a request as text, and says what any of the services takes for a success.
func (w *web) take(r *nethttp.Request) string {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	var headers strings.Builder
	_ = r.Header.Write(&headers)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got = append(w.got, fmt.Sprintf("%s %s%s\n%s\n%s", r.Method, r.Host, r.URL.RequestURI(), headers.String(), body))
	switch {
	case r.Host == "hooks.slack.com":
		return "ok"
	case r.Host == "api.pushbullet.com": // it sends the message back
		return strings.Replace(string(body), "{", `{"active": true,`, 1)
	case strings.HasSuffix(r.URL.Path, "/push"): // bark
		return `{"code": 200}`
	}
	return `{"ok": true, "code": 0, "errcode": 0, "status": 1, "result": "success", "success": true}`
}

// received are the requests since it was asked last.
func (w *web) received() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.got = nil }()
	return w.got
}

// exampleURLs are URLs that each service takes, by scheme. HOST is a server of HTTP.
func exampleURLs() map[string][]string {
	return map[string][]string{
		"bark":       {"bark://:devicekey@HOST/?scheme=http", "bark://:devicekey@bark.example.org/path?group=g&category=c&icon=i"},
		"discord":    {"discord://token@123456789", "discord://token@123456789?username=maint&color=0xff0000&thread_id=7"},
		"googlechat": {"googlechat://chat.googleapis.com/v1/spaces/FOO/messages?key=bar&token=baz"},
		"gotify":     {"gotify://HOST/Aaa.bbb.ccc.ddd?disabletls=yes", "gotify://HOST/sub/Aaa.bbb.ccc.ddd?disabletls=yes&priority=5"},
		"hangouts":   {"hangouts://chat.googleapis.com/v1/spaces/FOO/messages?key=bar&token=baz"},
		"ifttt":      {"ifttt://key/?events=one,two&value1=a&messagevalue=2&titlevalue=3"},
		"join":       {"join://shoutrrr:apikey@join/?devices=one,two&icon=warning"},
		"lark":       {"lark://open.larksuite.com/token", "lark://open.feishu.cn/token?link=https://example.org"},
		"matrix":     {"matrix://:token@HOST?disableTLS=yes"},
		"mattermost": {"mattermost://bot@HOST/token/channel?disabletls=yes&icon=smile", "mattermost://HOST/token?disabletls=yes"},
		"notifiarr":  {"notifiarr://apikey?channel=123456789", "notifiarr://apikey?channel=123456789&color=16711680&thumbnail=https://example.org/a.png"},
		"ntfy":       {"ntfy://HOST/topic?scheme=http", "ntfy://user:password@HOST/topic?scheme=http&tags=a,b&priority=high"},
		"opsgenie":   {"opsgenie://api.opsgenie.com/eb243592-faa2-4ba2-a551q-1afdf565c889?priority=P2&tags=a,b"},
		"pagerduty":  {"pagerduty:///eb243592faa24ba2a5511afdf565c889?severity=warning&source=maint"},
		"pushbullet": {"pushbullet://tokentokentokentokentokentokentoke/test"},
		"pushover":   {"pushover://:apptoken@usertoken/?devices=one&priority=1"},
		"rocketchat": {"rocketchat://user@HOST/tokenA/tokenB/channel"},
		"signal":     {"signal://HOST/+1234567890/+0987654321?disabletls=yes", "signal://user:password@HOST/+1234567890/group.test?disabletls=yes"},
		"slack":      {"slack://hook:AAAAAAAAA-BBBBBBBBB-123456789123456789123456@webhook?botname=maint&color=3f00fe", "slack://xoxb:123456789012-1234567890123-4mt0t4l1YL3g1T5L4cK70k3N@C001CH4NN3L"},
		"teams":      {"teams://11111111-4444-4444-8444-cccccccccccc@22222222-4444-4444-8444-cccccccccccc/33333333012222222222333333333344/44444444-4444-4444-8444-cccccccccccc/V2ESyij_gAljSoUQHvZoZYzlpAoAXExyOl26dlf1xHEx05?host=contoso.webhook.office.com&color=FF0000"},
		"telegram":   {"telegram://110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw@telegram?channels=@one,2"},
		"wecom":      {"wecom://693axxx6-7aoc-4bc4-97a0-0ec2sifa5aaa?mentioned_list=@all"},
		"zulip":      {"zulip://bot%40zulipchat.com:correcthorse@example.zulipchat.com?stream=foo&topic=bar"},
		"generic":    {"generic://HOST/hook?disabletls=yes"}, // and more in webhook_test.go
		"smtp":       {"smtp://HOST/?from=a@example.org&to=b@example.org"},
	}
}

func TestTheServicesAreThoseOfTheRouterButForItsLogger(t *testing.T) {
	want := slices.DeleteFunc((&router.ServiceRouter{}).ListServices(), func(scheme string) bool { return scheme == "logger" })
	slices.Sort(want)
	var got, shown []string
	for scheme := range makers() {
		got = append(got, scheme)
	}
	for scheme := range exampleURLs() {
		shown = append(shown, scheme)
	}
	slices.Sort(got)
	slices.Sort(shown)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("services (-router's +ours):\n%s", diff)
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("examples (-router's +ours):\n%s", diff)
	}
}

func TestAServiceSendsWhatItSendsForTheRouter(t *testing.T) {
	w := newWeb(t)
	for scheme, urls := range exampleURLs() {
		if scheme == "smtp" {
			continue // mail_test.go
		}
		for _, u := range urls {
			t.Run(u, func(t *testing.T) {
				sendsTheSame(t, w, strings.ReplaceAll(u, "HOST", strings.TrimPrefix(w.URL, "http://")))
			})
		}
	}
}

func sendsTheSame(t *testing.T, w *web, u string) {
	t.Helper()
	for _, text := range []string{"it begins", "a \"b\"\n{{.c}} <d> é"} {
		if err := byRouter(u, "Upgrade", text); err != nil {
			t.Fatalf("by the router: %v", err)
		}
		want := w.received()
		if err := deliver(u, message{origin: "agent", title: "Upgrade", text: text}); err != nil {
			t.Fatal(err)
		}
		got := w.received()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-router's +ours):\n%s", diff)
		}
		if len(got) == 0 {
			t.Error("nothing was sent")
		}
	}
}

func TestAURLIsRefusedWhereTheRouterRefusesIt(t *testing.T) {
	urls := []string{
		"", "slack", "://slack", "slack:", "logging://", "SLACK://token", "slack+https://hooks.slack.com/services/a/b/c", "smtp+tls://host/?from=a@b&to=c@d",
		"generic+://host", "generic+https://host/hook", "GENERIC+HTTP://host/hook", "generic+https+http://host",
		"teams+https://google.com/search?q=what", "teams+https://contoso.webhook.office.com/webhookb2/11111111-4444-4444-8444-cccccccccccc@22222222-4444-4444-8444-cccccccccccc/IncomingWebhook/33333333012222222222333333333344/44444444-4444-4444-8444-cccccccccccc/V2ESyij_gAljSoUQHvZoZYzlpAoAXExyOl26dlf1xHEx05",
		"notifiarr+https://notifiarr.com/api/v1/notification/passthrough/apikey?channel=1", "smtp://", "smtp://host", "smtp://host/?from=a@b", "smtp://host/?from=a@b&to=c@d&auth=magic",
		"smtp://host/?from=a@b&to=c@d&timeout=soon", "smtp://host/?from=a@b&to=c@d&colour=red", "smtp://host:70000/?from=a@b&to=c@d", "generic://host?disabletls=perhaps",
	}
	for _, examples := range exampleURLs() {
		for _, u := range examples {
			scheme, rest, _ := strings.Cut(u, "://")
			urls = append(urls, u, scheme+"://", scheme+"://dummy@dummy.com", scheme+"+https://"+rest, u+"&nonsense=1", strings.ToUpper(scheme)+"://"+rest)
		}
	}
	for _, u := range urls {
		t.Run(u, func(t *testing.T) {
			var r router.ServiceRouter
			var want types.Service
			theirs := guarded(func() (err error) { want, err = r.Locate(u); return err })
			var got service
			ours := guarded(func() (err error) { got, err = locate(u); return err })
			if (theirs == nil) != (ours == nil) {
				t.Fatalf("the router says %v, ours %v", theirs, ours)
			}
			if l, is := got.(fromLibrary); is {
				if w, g := format.GetServiceConfig(want), format.GetServiceConfig(l.Service); !reflect.DeepEqual(w, g) {
					t.Errorf("the router understands %+v, we %+v", w, g)
				}
			}
		})
	}
}

// Whatever a sink's URL says, who speaks stands in each request, however long the message is.
func TestWhoSpeaksIsSeenInEverySink(t *testing.T) {
	w := newWeb(t)
	urls := exampleURLs()
	urls["matrix"] = []string{"matrix://:token@HOST?disableTLS=yes&rooms=!ops:example.org"}
	telegram := urls["telegram"][0]
	urls["telegram"] = append(urls["telegram"], telegram+"&parsemode=HTML", telegram+"&parsemode=Markdown", telegram+"&parsemode=MarkdownV2")
	urls["ifttt"] = append(urls["ifttt"], "ifttt://key/?events=one", "ifttt://key/?events=one&messagevalue=1")
	urls["discord"] = append(urls["discord"], "discord://token@123456789?splitlines=no", "discord://token@123456789?json=yes")
	urls["generic"] = append(urls["generic"], "generic://HOST/hook?disabletls=yes&template=json", "generic://HOST/hook?disabletls=yes&template=json&titlekey=text&messagekey=text")
	delete(urls, "smtp") // mail_test.go
	for _, all := range urls {
		for _, u := range all {
			t.Run(u, func(t *testing.T) {
				u := strings.ReplaceAll(u, "HOST", strings.TrimPrefix(w.URL, "http://"))
				for _, text := range []string{"it begins", `{"content": "it begins"}`, strings.Repeat("it begins\n", MaxText/10)} {
					call := callFor(&plan.NotificationProperties{Title: "Plan payments/db succeeded", Message: text, Sinks: []string{"ops"}}, map[string]string{"ops": u})
					if out := New().Pass(t.Context(), call); out.State != executors.Done {
						t.Fatalf("%+v", out)
					}
					told := 0
					for _, got := range w.received() {
						if !strings.Contains(got, "begins") {
							continue // Matrix looks for its rooms first
						}
						got := strings.NewReplacer("%2F", "/", "%3A", ":", "%20", " ", "+", " ").Replace(got)
						if told++; !strings.Contains(got, "plan shop/orders: Plan payments/db succeeded") {
							t.Errorf("nobody sees who speaks in %s", got[:min(len(got), 1000)])
						}
					}
					if told == 0 {
						t.Error("nothing was sent")
					}
				}
			})
		}
	}
}

// What a service would take for markup is text.
func TestMarkupInAMessageIsText(t *testing.T) {
	w := newWeb(t)
	for u, want := range map[string]string{
		"slack://hook:AAAAAAAAA-BBBBBBBBB-123456789123456789123456@webhook":                             "&lt;!channel&gt; a &amp; b &lt;https://evil|https://good&gt;",
		"telegram://110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw@telegram?channels=@one&parsemode=HTML": "&lt;!channel&gt; a &amp; b &lt;https://evil|https://good&gt;",
		"discord://token@123456789?json=yes":                                                            `"description":"<!channel> a & b <https://evil|https://good>"`,
	} {
		t.Run(u, func(t *testing.T) {
			const text = "<!channel> a & b <https://evil|https://good>"
			if err := deliver(u, message{origin: "agent", title: text, text: text}); err != nil {
				t.Fatal(err)
			}
			got := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(strings.Join(w.received(), "\n"))
			if n := strings.Count(got, strings.TrimPrefix(want, `"description":`)); n != 2 || !strings.Contains(got, want) {
				t.Errorf("%d times in %s", n, got)
			}
		})
	}
}
