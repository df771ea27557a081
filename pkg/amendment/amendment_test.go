package amendment

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

func TestWhatMayBeAmended(t *testing.T) {
	now := time.Date(2026, 3, 2, 13, 0, 0, 0, time.UTC)
	r := hibernate.Record{Resources: []hibernate.Resource{
		{ID: "Deployment/dev/web", UID: "1", Before: json.RawMessage(`{"replicas":3}`), CapturedAt: now, AsleepAt: &now},
		{ID: "CronJob/dev/tick", UID: "2", Before: json.RawMessage(`{"suspend": false}`), CapturedAt: now, AsleepAt: &now},
		{ID: "Deployment/dev/back", UID: "3", Before: json.RawMessage(`{"replicas":1}`), RestoredAt: &now},
		{ID: "Deployment/dev/theirs", UID: "4", Before: json.RawMessage(`{"replicas":1}`), Left: "somebody changed it while it slept"},
		{ID: "Pool/a", UID: "5", Before: json.RawMessage(`{"limits":{"cpu":"10"},"nodes":null}`)},
		{ID: "Pool/b", UID: "6", Before: json.RawMessage(`{"most":3000000000,"share":1.5}`)},
		{ID: "Pool/c", UID: "7", Before: json.RawMessage(`{}`)},
	}}
	for name, c := range map[string]struct {
		edit    func([]Value) []Value
		changed string
		fault   string
	}{
		"nothing":           {func(l []Value) []Value { return l }, "", ""},
		"spelled otherwise": {func(l []Value) []Value { l[1].Before = json.RawMessage(`{"suspend":false}`); return l }, "", ""},
		"another number":    {func(l []Value) []Value { l[0].Before = json.RawMessage(`{"replicas":5}`); return l }, "Deployment/dev/web", ""},
		"another switch":    {func(l []Value) []Value { l[1].Before = json.RawMessage(`{"suspend":true}`); return l }, "CronJob/dev/tick", ""},
		"a field inside": {func(l []Value) []Value {
			l[4].Before = json.RawMessage(`{"limits":{"cpu":"20"},"nodes":null}`)
			return l
		}, "Pool/a", ""},
		"one less":                 {func(l []Value) []Value { return l[1:] }, "", "has 6 resources and had 7: none may be added or removed"},
		"another id":               {func(l []Value) []Value { l[0].ID = "x"; return l }, "", "[0]: id is \"x\" and was \"Deployment/dev/web\": only before may be changed"},
		"below nothing":            {func(l []Value) []Value { l[0].Before = json.RawMessage(`{"replicas":-1}`); return l }, "", "[0]: before of Deployment/dev/web .replicas must not be negative"},
		"more than fits":           {func(l []Value) []Value { l[0].Before = json.RawMessage(`{"replicas":2147483648}`); return l }, "", "[0]: before of Deployment/dev/web .replicas must not be above 2147483647"},
		"as much as fits":          {func(l []Value) []Value { l[0].Before = json.RawMessage(`{"replicas":2147483647}`); return l }, "Deployment/dev/web", ""},
		"to nothing":               {func(l []Value) []Value { l[0].Before = json.RawMessage(`{"replicas":0}`); return l }, "Deployment/dev/web", ""},
		"beside what never fitted": {func(l []Value) []Value { l[5].Before = json.RawMessage(`{"most":3000000000,"share":2.5}`); return l }, "Pool/b", ""},
		"less than never fitted":   {func(l []Value) []Value { l[5].Before = json.RawMessage(`{"most":2999999999,"share":1.5}`); return l }, "Pool/b", ""},
		"a number for no fields":   {func(l []Value) []Value { l[6].Before = json.RawMessage(`1`); return l }, "", "[6]: before of Pool/c has the fields , no more and no less"},
		"a part of a pod":          {func(l []Value) []Value { l[0].Before = json.RawMessage(`{"replicas":1.5}`); return l }, "", "[0]: before of Deployment/dev/web .replicas must be a whole number"},
		"a word":                   {func(l []Value) []Value { l[0].Before = json.RawMessage(`{"replicas":"3"}`); return l }, "", "[0]: before of Deployment/dev/web .replicas must be a number"},
		"another type":             {func(l []Value) []Value { l[1].Before = json.RawMessage(`{"suspend":1}`); return l }, "", "[1]: before of CronJob/dev/tick .suspend must be of the type that it was: false"},
		"a mistyped field":         {func(l []Value) []Value { l[0].Before = json.RawMessage(`{"replica":3}`); return l }, "", "[0]: before of Deployment/dev/web has the fields replicas, no more and no less"},
		"none":                     {func(l []Value) []Value { l[0].Before = json.RawMessage(`null`); return l }, "", "[0]: before of Deployment/dev/web has the fields replicas, no more and no less"},
		"no JSON":                  {func(l []Value) []Value { l[0].Before = nil; return l }, "", "[0]: before of Deployment/dev/web cannot be read"},
		"what is awake again":      {func(l []Value) []Value { l[2].Before = json.RawMessage(`{"replicas":3}`); return l }, "", "[2]: Deployment/dev/back is awake again: what it was is put back already"},
		"what is left alone":       {func(l []Value) []Value { l[3].Before = json.RawMessage(`{"replicas":3}`); return l }, "", "[3]: Deployment/dev/theirs is not put back in this cycle: somebody changed it while it slept"},
		"nothing for something": {func(l []Value) []Value {
			l[4].Before = json.RawMessage(`{"limits":{"cpu":"20"},"nodes":1}`)
			return l
		}, "", "[4]: before of Pool/a .nodes must be of the type that it was: <nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			out, changed, faults := Put(r, c.edit(Of(r)))
			fault := ""
			if len(faults) > 0 {
				fault = faults.Error()
			}
			if strings.Join(changed, " ") != c.changed || fault != c.fault {
				t.Fatalf("changed %q, fault %q", changed, fault)
			}
			for i, res := range out.Resources {
				other := string(res.Before) != string(r.Resources[i].Before)
				if other != (c.changed == res.ID) {
					t.Errorf("%s is put back to %s", res.ID, res.Before)
				}
			}
		})
	}
}
