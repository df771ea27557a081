package config

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-maint/kubectl-maint/pkg/agent/agenttest"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/client"
	"github.com/kubectl-maint/kubectl-maint/pkg/agent/status"
	"github.com/kubectl-maint/kubectl-maint/pkg/agentconfig"
	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
)

const system = "maint-system"

// held is a configuration store, and what it was heard to do.
type held struct {
	*Store
	cluster *agenttest.Cluster
	status  *status.Writer
	events  *agenttest.Events
	level   *slog.LevelVar
	read    []bool // whether each that was read is valid
	fence   *client.Fence
	dialed  []string
	asked   []string // by HTTP
}

// asks is a transport that notes the rules by which it was made.
type asks func(*http.Request) (*http.Response, error)

func (f asks) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func newHeld(t *testing.T) *held {
	t.Helper()
	h := &held{cluster: agenttest.New(t), events: &agenttest.Events{}, level: &slog.LevelVar{}}
	conn, _ := h.cluster.Connect()
	h.fence, h.status = conn.Fence, status.NewWriter(conn.Kube, h.events)
	h.Store = New(Config{
		Namespace: system, Level: h.level, Log: slog.New(slog.DiscardHandler), Fence: conn.Fence, Kube: conn.Kube, OnRead: func(valid bool) { h.read = append(h.read, valid) },
		HTTP: func(o agentconfig.Outbound) *http.Client {
			return &http.Client{Transport: asks(func(r *http.Request) (*http.Response, error) {
				h.asked = append(h.asked, r.URL.Host+" by "+strings.Join(o.Allow, ","))
				return nil, errors.New("nobody listens")
			})}
		},
		Dialer: func(o agentconfig.Outbound) func(context.Context, string, string) (net.Conn, error) {
			return func(_ context.Context, _, address string) (net.Conn, error) {
				h.dialed = append(h.dialed, address+" by "+strings.Join(o.Allow, ","))
				return nil, errors.New("nobody listens")
			}
		},
	})
	return h
}

// configOf is the ConfigMap of a configuration.
func configOf(namespace, name, spec string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{annotations.LabelKind: annotations.KindAgentConfig}},
		Data:       map[string]string{annotations.DataConfig: "apiVersion: maint.dev/v1alpha1\nkind: AgentConfig\nspec: " + spec + "\n"},
	}
}

func ours(spec string) *corev1.ConfigMap { return configOf(system, annotations.AgentConfigName, spec) }

func TestWhichConfigurationIsInForce(t *testing.T) {
	for name, c := range map[string]struct {
		seen   []*corev1.ConfigMap
		level  slog.Level
		broken bool
		read   []bool
	}{
		"none yet":                      {},
		"the one of its name":           {seen: []*corev1.ConfigMap{ours("{logLevel: debug}")}, level: slog.LevelDebug, read: []bool{true}},
		"the newest":                    {seen: []*corev1.ConfigMap{ours("{logLevel: debug}"), ours("{logLevel: warn}")}, level: slog.LevelWarn, read: []bool{true, true}},
		"not one of another name":       {seen: []*corev1.ConfigMap{configOf(system, "mine", "{logLevel: debug}")}},
		"not one of another namespace":  {seen: []*corev1.ConfigMap{configOf("shop", annotations.AgentConfigName, "{logLevel: debug}")}},
		"the last that was understood":  {seen: []*corev1.ConfigMap{ours("{logLevel: debug}"), ours("{logLevel: loud}")}, level: slog.LevelDebug, broken: true, read: []bool{true, false}},
		"one that was mended":           {seen: []*corev1.ConfigMap{ours("{logLevel: loud}"), ours("{unheard: 1}"), ours("{logLevel: debug}")}, level: slog.LevelDebug, read: []bool{false, false, true}},
		"one that is shown again, once": {seen: []*corev1.ConfigMap{ours("{logLevel: debug}"), ours("{logLevel: debug}")}, level: slog.LevelDebug, read: []bool{true}},
		"one that names no level":       {seen: []*corev1.ConfigMap{ours("{logLevel: debug}"), ours("{}")}, read: []bool{true, true}},
		"not one without a text":        {seen: []*corev1.ConfigMap{{ObjectMeta: ours("").ObjectMeta, Data: map[string]string{"a": "b"}}}, broken: true, read: []bool{false}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHeld(t)
			for _, cm := range c.seen {
				h.Observe(cm)
			}
			if h.level.Level() != c.level || !slices.Equal(h.read, c.read) {
				t.Errorf("the level is %s, and it was told %v; want %s, %v", h.level.Level(), h.read, c.level, c.read)
			}
			if mended, err := h.Broken(); (err != nil) != c.broken || (mended != nil) != c.broken {
				t.Errorf("it is broken: %v", err)
			}
		})
	}
}

// Who waits for a broken one to be mended is told.
func TestABrokenConfigurationIsWaitedFor(t *testing.T) {
	h := newHeld(t)
	h.Observe(ours("{logLevel: loud}"))
	mended, err := h.Broken()
	if err == nil || !strings.Contains(err.Error(), "maint-system/maint-agent is broken, so nothing starts") {
		t.Fatalf("it says %v", err)
	}
	h.Observe(ours("{logLevel: louder}"))
	select {
	case <-mended:
		t.Fatal("another broken one is no better")
	default:
	}
	h.Observe(ours("{logLevel: info}"))
	<-mended
}

// One that is gone leaves in force what was; the same one made anew is read again.
func TestAConfigurationThatIsGoneStaysInForce(t *testing.T) {
	h := newHeld(t)
	h.Observe(ours("{logLevel: debug}"))
	h.Removed(configOf("shop", "other", "{}"))
	h.Removed(ours("{logLevel: debug}"))
	if h.level.Level() != slog.LevelDebug || h.Spec().LogLevel != "debug" {
		t.Errorf("the level is %s", h.level.Level())
	}
	if got := h.Stands(annotations.ConfigurationPresent); got != annotations.ConfigurationDeleted {
		t.Errorf("it stands as %q", got)
	}
	h.Observe(ours("{logLevel: debug}"))
	if got := h.Stands(annotations.ConfigurationDeleted); got != annotations.ConfigurationPresent || !slices.Equal(h.read, []bool{true, false, true}) {
		t.Errorf("it stands as %q, and it was told %v", got, h.read)
	}
}

// An agent that begins without a configuration knows by the heartbeat of the one before that there
// was one.
func TestAConfigurationThatIsGoneAtTheBeginningIsLost(t *testing.T) {
	for before, want := range map[string]string{"": "", annotations.ConfigurationPresent: annotations.ConfigurationLost, annotations.ConfigurationDeleted: annotations.ConfigurationLost, annotations.ConfigurationLost: annotations.ConfigurationLost} {
		h := newHeld(t)
		if got := h.Stands(before); got != want || slices.Equal(h.read, []bool{false}) != (want != "") {
			t.Errorf("after %q it stands as %q, and it was told %v", before, got, h.read)
		}
		if h.Stands(""); len(h.read) > 1 {
			t.Errorf("after %q it was told %v", before, h.read)
		}
	}
}

// Where a broken one is deleted, nothing is broken any more: an agent that found it begins with the
// defaults, as it would without any.
func TestABrokenConfigurationMayBeDeleted(t *testing.T) {
	h := newHeld(t)
	h.Observe(ours("{logLevel: loud}"))
	mended, _ := h.Broken()
	h.Removed(ours("{logLevel: loud}"))
	<-mended
	if _, err := h.Broken(); err != nil || h.level.Level() != slog.LevelInfo || !slices.Equal(h.read, []bool{false, false}) {
		t.Errorf("it says %v, at level %s, and it was told %v", err, h.level.Level(), h.read)
	}
	h.Removed(ours("{logLevel: loud}"))
	h.Observe(ours("{logLevel: loud}"))
	if _, err := h.Broken(); err == nil {
		t.Error("the same one made anew is broken again")
	}
}

// What is called while a run is under way is called by the rules of the newest configuration, by
// whatever protocol, and by a client that was made before; one that is broken changes nothing.
func TestWhatGoesOutsideLaterGoesByTheRulesOfThen(t *testing.T) {
	h := newHeld(t)
	kept := h.HTTPClient()
	calls := func() {
		t.Helper()
		if _, err := h.Dial(t.Context(), "tcp", "a.example.org:25"); err == nil || err.Error() != "nobody listens" {
			t.Errorf("it said %v", err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a.example.org", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range []*http.Client{h.HTTPClient(), kept} {
			if resp, err := one.Do(req); err == nil || !strings.Contains(err.Error(), "nobody listens") {
				t.Errorf("it said %v, %v", resp, err)
			}
		}
	}
	calls()
	for _, spec := range []string{"{outbound: {allow: [a.example.org]}}", "{outbound: {allow: [b.example.org]}}", "{outbound: {allow: [c.example.org]}, unheard: 1}", "{}"} {
		h.Observe(ours(spec))
		calls()
	}
	var dialed, asked []string
	for _, by := range []string{"", "a.example.org", "b.example.org", "b.example.org", ""} {
		dialed, asked = append(dialed, "a.example.org:25 by "+by), append(asked, "a.example.org by "+by, "a.example.org by "+by)
	}
	if !slices.Equal(h.dialed, dialed) || !slices.Equal(h.asked, asked) {
		t.Errorf("dialed %q and asked %q, want %q and %q", h.dialed, h.asked, dialed, asked)
	}
}

// Nothing goes outside but by the rules in force, and not from an agent that may not lead.
func TestWhatGoesOutsideGoesByTheRulesInForce(t *testing.T) {
	h := newHeld(t)
	h.Observe(ours(`{outbound: {allow: ["*.example.org"]}}`))
	if _, err := h.Dial(t.Context(), "tcp", "a.example.org:25"); err == nil || err.Error() != "nobody listens" {
		t.Errorf("it said %v", err)
	}
	if want := []string{"a.example.org:25 by *.example.org"}; !slices.Equal(h.dialed, want) {
		t.Errorf("dialed %q, want %q", h.dialed, want)
	}
	h.fence.Close()
	if _, err := h.Dial(t.Context(), "tcp", "a.example.org:25"); !errors.Is(err, client.ErrFenced) || len(h.dialed) != 1 {
		t.Errorf("it said %v, and dialed %q", err, h.dialed)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a.example.org", nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := h.HTTPClient().Do(req); !errors.Is(err, client.ErrFenced) {
		t.Errorf("it said %v, %v", resp, err)
	}
	if _, err := h.Sink(t.Context(), "", "ops"); !errors.Is(err, client.ErrFenced) {
		t.Errorf("it said %v", err)
	}
	h.config.Dialer = nil
	if _, err := h.Dial(t.Context(), "tcp", "a.example.org:25"); err == nil || !strings.Contains(err.Error(), "nothing to dial with") {
		t.Errorf("it said %v", err)
	}
}

func condition(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: "R", Message: message}
}

func TestWhatIsPublishedOnAConfiguration(t *testing.T) {
	limited := condition("NodeLimits", metav1.ConditionFalse, "no zone is known")
	for name, c := range map[string]struct {
		cm      *corev1.ConfigMap
		found   []metav1.Condition // by the nodes; nil: nobody has looked yet
		stands  []metav1.Condition // what an agent before said
		agent   []metav1.Condition // what is wrong with this one
		message string
		types   string
		event   string
	}{
		"it is in force": {cm: ours("{}"), found: []metav1.Condition{}, message: "in force", types: "Valid=True"},
		"it is broken": {
			cm: ours("{logLevel: loud}"), found: []metav1.Condition{}, message: "the document is invalid, and the previous configuration stays in force: ", types: "Valid=False", event: "Warning ConfigFaults maint-agent: the document is invalid",
		},
		"it is not the one that is used": {
			cm: configOf("shop", "mine", "{}"), message: "this agent uses the ConfigMap maint-system/maint-agent", types: "Valid=False", event: "Warning ConfigNotUsed mine: ",
		},
		"a limit holds maintenance back": {cm: ours("{}"), found: []metav1.Condition{limited}, message: "no zone is known", types: "Valid=True NodeLimits=False"},
		"what the leader before said of limits stands": {
			cm: ours("{}"), stands: []metav1.Condition{condition("Valid", metav1.ConditionFalse, "old"), limited}, message: "no zone is known", types: "Valid=True NodeLimits=False",
		},
		"something is wrong with the agent itself": {
			cm: ours("{}"), found: []metav1.Condition{limited}, agent: []metav1.Condition{status.ClockDoubt("the clocks are apart")}, message: "no zone is known", types: "Valid=True NodeLimits=False ClockDoubt=True",
		},
		"and nothing else": {cm: ours("{}"), found: []metav1.Condition{}, agent: []metav1.Condition{status.ClockDoubt("the clocks are apart")}, message: "the clocks are apart", types: "Valid=True ClockDoubt=True"},
		"what was wrong with the agent before is not said of this one": {
			cm: ours("{}"), message: "in force", types: "Valid=True",
			stands: []metav1.Condition{condition("SigningKey", metav1.ConditionFalse, "old"), condition("ClockDoubt", metav1.ConditionTrue, "old"), condition(ConditionConfined, metav1.ConditionFalse, "old"), condition(status.ConditionFreezes, metav1.ConditionFalse, "old")},
		},
		"nor on another configuration": {
			cm: configOf("shop", "mine", "{}"), agent: []metav1.Condition{status.ClockDoubt("the clocks are apart")}, message: "this agent uses", types: "Valid=False", event: "Warning ConfigNotUsed mine: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, cm := newHeld(t), c.cm.DeepCopy()
			if c.stands != nil {
				text, err := json.Marshal(c.stands)
				if err != nil {
					t.Fatal(err)
				}
				cm.Annotations = map[string]string{annotations.StatusConditions: string(text)}
			}
			h.cluster.Put(cm)
			h.Observe(c.cm)
			if c.found != nil && (!h.SetLimits(c.found) || h.SetLimits(c.found)) {
				t.Error("limits are news twice, or never")
			}
			p := Publisher{Store: h.Store, Status: h.status, Events: h.events, Now: func() time.Time { return time.Unix(1000, 0) }, Agent: func() []metav1.Condition { return c.agent }}
			last := &status.Written{}
			for range 2 { // the second time nothing is new
				if err := p.Publish(t.Context(), h.cluster.ConfigMap(cm.Namespace, cm.Name), last); err != nil {
					t.Fatal(err)
				}
			}
			said := h.cluster.ConfigMap(cm.Namespace, cm.Name).Annotations
			if !strings.HasPrefix(said[annotations.StatusMessage], c.message) || said[annotations.StatusObserved] != annotations.Observed(cm) {
				t.Errorf("it says %q", said)
			}
			var list []metav1.Condition
			if err := json.Unmarshal([]byte(said[annotations.StatusConditions]), &list); err != nil {
				t.Fatal(err)
			}
			var types []string
			for _, one := range list {
				types = append(types, one.Type+"="+string(one.Status))
			}
			if got := strings.Join(types, " "); got != c.types {
				t.Errorf("the conditions are %s, want %s", got, c.types)
			}
			if log := h.cluster.Log(); len(log) != 1 {
				t.Errorf("it wrote %q", log)
			}
			if events := h.events.All(); (c.event != "") != (len(events) == 1) || c.event != "" && !strings.HasPrefix(events[0], c.event) {
				t.Errorf("it told %q", events)
			}
		})
	}
	if got := LimitConditions("{"); got != nil {
		t.Errorf("what cannot be read says %v", got)
	}
}
