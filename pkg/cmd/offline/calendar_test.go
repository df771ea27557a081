package offline_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/cmdtest"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/source"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

// The fixture has windows over midnight, a change of clocks, a freeze, a
// calendar document, a pause and a closed namespace. Run with UPDATE_GOLDEN=1 to
// write what it gives now, and read the difference.
func TestCalendarDrawsWhatTheDocumentsSay(t *testing.T) {
	for _, format := range []string{"table", "ics", "svg"} {
		t.Run(format, func(t *testing.T) {
			got := cmdtest.Offline(t, cmd.Run, "", "calendar", "-f", "testdata/calendar/shop.yaml", "--from", "2026-03-27T11:00:00Z", "--to", "2026-04-08T22:00:00Z", "-o", format)
			if got.Code != 0 || got.Err != "from Fri 2026-03-27 12:00 CET (2026-03-27T11:00:00Z) to Thu 2026-04-09 00:00 CEST (2026-04-08T22:00:00Z)\n" {
				t.Fatalf("exit code %d\n%s", got.Code, got.Err)
			}
			golden := filepath.Join("testdata", "calendar", "want."+format)
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(golden, []byte(got.Out), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.Out, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCalendarForScripts(t *testing.T) {
	line := []string{"calendar", "-f", "testdata/calendar/shop.yaml", "--from", "2026-03-27T11:00:00Z", "--to", "2026-03-29T12:00:00Z"}
	for format, want := range map[string]string{
		"jsonpath={.apiVersion} {.kind} {.items[0].kind} {.items[0].type} {.items[0].owner.kind} {.items[0].start}": "maint.dev/v1alpha1 CalendarEntryList CalendarEntry freeze policy 2026-03-27T11:00:00Z",
		"name": "policy/databases-of-the-payment-service\nplan/cache-refresh\npolicy/nightly\npolicy/weekends\nplan/orders-weekly\n",
	} {
		got := cmdtest.Offline(t, cmd.Run, "", append(line, "-o", format)...)
		if got.Code != 0 || !strings.HasPrefix(got.Out, want) {
			t.Errorf("%s: exit code %d, want %q\n%s%s", format, got.Code, want, got.Out, got.Err)
		}
	}
}

func TestCalendarTellsAllThatIsWrongWithItsFlags(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		err  string
	}{
		{"an unknown format", []string{"-o", "pdf"}, "error: -o must be table, ics, svg, html, json, yaml, name, jsonpath=…, custom-columns=… or go-template=…, is \"pdf\"\n"},
		{"files and namespaces", []string{"-f", ".", "-A", "--from", "soon"}, "error: \"soon\" is no time: " + instant.Forms + "\nerror: give -A or -f, and not both: files are read whole\n"},
		{"files and labels", []string{"-f", ".", "-l", "team=a"}, "error: give -l or -f, and not both: files are read whole\n"},
		{"an end before the start", []string{"--to", "2026-11-01"}, "error: --to Sun 2026-11-01 00:00 CET (2026-10-31T23:00:00Z) is not after --from Mon 2026-11-16 00:00 CET (2026-11-15T23:00:00Z)\n"},
		{"two years", []string{"--from", "2026-01-01T00:00:00Z", "--to", "2028-01-01T00:00:00Z"}, "error: 730 days are too long: at most 400\n"},
		{"an unknown zone", []string{"--timezone", "Europe/Berlni"}, "error: --timezone: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := cmdtest.Offline(t, cmd.Run, "", append([]string{"calendar"}, c.args...)...)
			if got.Code != 2 || got.Out != "" || !strings.HasPrefix(got.Err, c.err) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestCalendarOf(t *testing.T) {
	const day = "triggers: {schedules: [{cron: '0 12 * * *'}]}"
	for _, c := range []struct{ name, text, want string }{
		{
			"a policy that is always open",
			cmdtest.PolicyOf("p", "", "{strategy: Permissive}"),
			"- window p -",
		},
		{
			"a policy that is never open",
			cmdtest.PolicyOf("p", "", "{strategy: Restrictive}"),
			"- freeze p Restrictive",
		},
		{
			"a policy that names a calendar which is not there",
			cmdtest.PolicyOf("p", "", "{strategy: MaintenanceSchedule, maintenanceSchedule: {exclude: [{calendar: {name: gone}}]}}"),
			"- freeze p not ready: maintenanceSchedule.exclude[0].calendar: \"gone\": there is no such Calendar document",
		},
		{
			"a pause with an end",
			cmdtest.PolicyOf("p", "maint.dev/pause: '2026-11-22T00:00:00Z'", "{strategy: Permissive}"),
			"… – Sun 2026-11-22 00:00 UTC freeze p paused\nSun 2026-11-22 00:00 UTC – … window p -",
		},
		{
			"an exclusion that is opened by an override",
			cmdtest.PolicyOf("p", "maint.dev/change-strategy: PermissiveUntil, maint.dev/permissive-until: '2026-11-22T12:00:00Z'", "{strategy: MaintenanceSchedule, maintenanceSchedule: {exclude: [{fromDate: '2026-11-20', untilDate: '2026-11-23', reason: sale}]}}"),
			"… – Sun 2026-11-22 12:00 UTC window p cut short by sale, PermissiveUntil 2026-11-22T12:00:00Z\nSun 2026-11-22 12:00 – Mon 2026-11-23 00:00 UTC freeze p sale",
		},
		{
			"days of a calendar that touch, each with its reason",
			cmdtest.PolicyOf("p", "", "{strategy: MaintenanceSchedule, maintenanceSchedule: {windows: [{days: [Sat], start: '01:00', end: '02:00'}], exclude: [{calendar: {name: c}}]}}") +
				"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: shop, labels: {maint.dev/kind: calendar}}\ndata:\n  calendar.yaml: |\n" +
				"    - {from: '2026-11-21', reason: one}\n    - {from: '2026-11-22T00:00:00Z', until: '2026-11-22T10:20:30Z', reason: two}\n    - {from: '2026-11-22T10:20:30Z', until: '2026-11-23T00:00:00Z', reason: three}\n",
			"Sat 2026-11-21 00:00 – Sun 2026-11-22 00:00 UTC freeze p one\nSun 2026-11-22 00:00–10:20:30 UTC freeze p two\nSun 2026-11-22 10:20:30 – Mon 2026-11-23 00:00 UTC freeze p three",
		},
		{
			"slots: skipped, and outside of the window",
			cmdtest.PolicyOf("p", "", "{strategy: MaintenanceSchedule, maintenanceSchedule: {windows: [{days: [Sun], start: '11:00', end: '13:00'}]}}") +
				cmdtest.PlanOf("a", "maint.dev/skip: '2026-11-22T12:00:00Z'", day) + cmdtest.PlanOf("b", "", "policies: [{name: p}], "+day),
			"Sat 2026-11-21 12:00 UTC slot a -\nSat 2026-11-21 12:00 UTC slot b not permitted then: policy p: outside of the windows\nSun 2026-11-22 11:00–13:00 UTC window p -\nSun 2026-11-22 12:00 UTC slot a skipped\nSun 2026-11-22 12:00 UTC slot b -",
		},
		{
			"a namespace that is closed and paused",
			"apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, annotations: {maint.dev/change-strategy: Restrictive, maint.dev/pause: '2026-11-22T00:00:00Z'}}\n" + cmdtest.PlanOf("a", "", day),
			"… – Sun 2026-11-22 00:00 UTC freeze namespace shop paused\n- freeze namespace shop Restrictive\nSat 2026-11-21 12:00 UTC slot a namespace shop is paused\nSun 2026-11-22 12:00 UTC slot a not permitted then: namespace: Restrictive",
		},
		{
			"a plan that is frozen",
			cmdtest.PlanOf("a", "maint.dev/change-strategy: RestrictiveUntil, maint.dev/restrictive-until: '2026-11-22T00:00:00Z'", day),
			"… – Sun 2026-11-22 00:00 UTC freeze a RestrictiveUntil\nSat 2026-11-21 12:00 UTC slot a not permitted then: RestrictiveUntil Sun 2026-11-22 01:00 CET\nSun 2026-11-22 12:00 UTC slot a -",
		},
		{
			"sleep: one that is on, one that is skipped, and why it ends",
			cmdtest.SleeperOf("s", "maint.dev/skip: '2026-11-21T23:00:00Z'", sleepsAtNight+", exceptions: [{type: suspend, validFrom: '2026-11-21T05:00:00Z', validUntil: '2026-11-21T09:00:00Z', reason: tests}]"),
			"Fri 2026-11-20 23:00 – Sat 2026-11-21 05:00 UTC sleep s ends: suspended by an exception: tests\nSat 2026-11-21 09:00–11:00 UTC sleep s -\nSat 2026-11-21 23:00 – Sun 2026-11-22 11:00 UTC sleep s skipped\nSun 2026-11-22 23:00 – Mon 2026-11-23 11:00 UTC sleep s -",
		},
		{
			"sleep that somebody holds, and a namespace that is paused",
			"apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, annotations: {maint.dev/pause: '2026-11-22T12:00:00Z'}}\n" + cmdtest.SleeperOf("s", "maint.dev/hold-state: asleep, maint.dev/hold-until: '2026-11-21T12:00:00Z'", sleepsAtNight),
			"… – Sun 2026-11-22 12:00 UTC freeze namespace shop paused\n… – Sat 2026-11-21 12:00 UTC sleep s it is held asleep\nSat 2026-11-21 23:00 – Sun 2026-11-22 11:00 UTC sleep s namespace shop is paused\nSun 2026-11-22 23:00 – Mon 2026-11-23 11:00 UTC sleep s -",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmdtest.WriteFiles(t, map[string]string{"f.yaml": c.text})
			got := cmdtest.Offline(t, cmd.Run, "", "calendar", "-f", "f.yaml", "--from", "2026-11-21T00:00:00Z", "--to", "2026-11-23T00:00:00Z")
			if got.Code != 0 || got.Err != "from Sat 2026-11-21 01:00 CET (2026-11-21T00:00:00Z) to Mon 2026-11-23 01:00 CET (2026-11-23T00:00:00Z)\n" {
				t.Fatalf("%+v", got)
			}
			if diff := cmp.Diff(c.want, withoutLocal(got.Out)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A hold is drawn from when the plan fell asleep by it, and the nights that it covers are not
// drawn under it. At the tests' now it is Saturday 00:00 UTC.
func TestAHoldIsDrawnFromWhenThePlanFellAsleep(t *testing.T) {
	const thursdayNight, saturdayNight = "2026-11-20T00:30:00Z", "2026-11-22T00:30:00Z"
	const tuesday, wednesdayNight = "Mon 2026-11-16 23:00 – Tue 2026-11-17 11:00 UTC sleep s -\nTue 2026-11-17 23:00 – Wed 2026-11-18 11:00 UTC sleep s -", "Wed 2026-11-18 23:00 – Thu 2026-11-19 11:00 UTC sleep s -"
	for _, c := range []struct{ name, until, asleep, want string }{
		{"begun by day", saturdayNight, "2026-11-18T15:00:00Z", tuesday + "\nWed 2026-11-18 15:00 – Sun 2026-11-22 00:30 UTC sleep s it is held asleep\nSun 2026-11-22 00:30–11:00 UTC sleep s held asleep until Sun 2026-11-22 01:30 CET"},
		{"begun in a night", saturdayNight, thursdayNight, tuesday + "\n" + wednesdayNight + "\nThu 2026-11-19 23:00 – Fri 2026-11-20 11:00 UTC sleep s -\nFri 2026-11-20 11:00 – Sun 2026-11-22 00:30 UTC sleep s it is held asleep\nSun 2026-11-22 00:30–11:00 UTC sleep s held asleep until Sun 2026-11-22 01:30 CET"},
		{"without an end", "", "2026-11-18T15:00:00Z", tuesday + "\nWed 2026-11-18 15:00 UTC – … sleep s it is held asleep"},
		{"that ends with the night in which it began", "2026-11-21T04:00:00Z", "2026-11-20T23:00:10Z", tuesday + "\n" + wednesdayNight + "\nThu 2026-11-19 23:00 – Fri 2026-11-20 11:00 UTC sleep s -\nFri 2026-11-20 23:00 – Sat 2026-11-21 11:00 UTC sleep s held asleep until Sat 2026-11-21 05:00 CET\nSat 2026-11-21 23:00 – Sun 2026-11-22 11:00 UTC sleep s -"},
	} {
		t.Run(c.name, func(t *testing.T) {
			notes := []string{"maint.dev/hold-state", "asleep", "status.maint.dev/asleep", c.asleep}
			if c.until != "" {
				notes = append(notes, "maint.dev/hold-until", c.until)
			}
			s := cmdtest.Sleeper("s", sleepsAtNight, cmdtest.Noting(notes...), func(cm *corev1.ConfigMap) { cm.CreationTimestamp = metav1.NewTime(cmdtest.Now().AddDate(0, -1, 0)) })
			got := cmdtest.NewCluster(t, cmd.Run, s, cmdtest.Namespace("shop"), cmdtest.Agent()).Maint("calendar", "--from", "2026-11-16T12:00:00Z", "--to", "2026-11-22T12:00:00Z")
			if diff := cmp.Diff(c.want, withoutLocal(got.Out)); diff != "" || got.Code != 0 {
				t.Errorf("exit code %d (-want +got):\n%s%s", got.Code, diff, got.Err)
			}
		})
	}
}

// sleepsAtNight sleeps from 18:00 to 06:00 in New York: for an hour at the tests' now.
const sleepsAtNight = "schedule: {timezone: America/New_York, offHours: [{start: '18:00', end: '06:00'}]}"

// A picture with sleep says what that looks like; others are as they were.
func TestSleepIsDrawn(t *testing.T) {
	cmdtest.WriteFiles(t, map[string]string{"f.yaml": cmdtest.SleeperOf("nights", "maint.dev/skip: '2026-11-21T23:00:00Z'", sleepsAtNight), "g.yaml": cmdtest.PolicyOf("p", "", "{strategy: Permissive}")})
	draw := func(file, format string) string {
		got := cmdtest.Offline(t, cmd.Run, "", "calendar", "-f", file, "-o", format)
		if got.Code != 0 || got.Err != "" {
			t.Fatalf("%+v", got)
		}
		return got.Out
	}
	for format, words := range map[string][]string{
		"svg":  {">sleep: hibernated<", `class="sleep"`, `class="sleep idle"`, "idle sleep of nights"},
		"html": {".badge.sleep", "asleep</span>", "until Sat 2026-11-21 12:00 CET"},
		"ics":  {"SUMMARY:nights: asleep\r\n", "SUMMARY:nights (does not sleep)\r\n", "CATEGORIES:SLEEP\r\n", "DTSTART:20261120T230000Z\r\nDTEND:20261121T110000Z\r\n"},
	} {
		out := draw("f.yaml", format)
		for _, word := range words {
			if !strings.Contains(out, word) {
				t.Errorf("%s has no %q", format, word)
			}
		}
		if without := draw("g.yaml", format); strings.Contains(without, "sleep") {
			t.Errorf("%s speaks of sleep where nothing sleeps", format)
		}
	}
}

// withoutLocal leaves the columns behind the first, and one space between them.
func withoutLocal(table string) string {
	head, rest, _ := strings.Cut(table, "\n")
	from := len([]rune(head[:strings.Index(head, "UTC")]))
	var out []string
	for line := range strings.SplitSeq(strings.TrimSpace(rest), "\n") {
		out = append(out, strings.Join(strings.Fields(string([]rune(line)[from:])), " "))
	}
	return strings.Join(out, "\n")
}

func TestCalendarOfNothingSaysSo(t *testing.T) {
	cmdtest.WriteFiles(t, map[string]string{"f.yaml": cmdtest.Manifest()})
	cmdtest.Offline(t, cmd.Run, "", "calendar", "-f", "f.yaml").Is(t, cmdtest.Printed{Code: 0, Out: "", Err: "No resources found\nnothing from Mon 2026-11-16 00:00 CET (2026-11-15T23:00:00Z) to Mon 2026-12-21 00:00 CET (2026-12-20T23:00:00Z)\n"})
	cmdtest.Offline(t, cmd.Run, "", "calendar", "-f", "f.yaml", "--from", "2026-11-21T00:00:00Z", "--to", "2026-11-22T00:00:00Z", "-o", "ics").Is(t, cmdtest.Printed{
		Code: 0, Out: "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//kubectl-maint//calendar//EN\r\nCALSCALE:GREGORIAN\r\nNAME:Maintenance calendar\r\nX-WR-CALNAME:Maintenance calendar\r\nEND:VCALENDAR\r\n",
		Err: "nothing from Sat 2026-11-21 01:00 CET (2026-11-21T00:00:00Z) to Sun 2026-11-22 01:00 CET (2026-11-22T00:00:00Z)\n",
	})
}

// A feed shows nobody that something is left out of it, so standard error does.
func TestAFeedThatWouldBeTooLargeTellsWhatItLeavesOut(t *testing.T) {
	const plans = 201
	var manifests strings.Builder
	for i := range plans {
		fmt.Fprintf(&manifests, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: plan-%03d, namespace: shop, labels: {maint.dev/kind: plan}}\ndata: {plan.yaml: \"{apiVersion: maint.dev/v1alpha1, kind: Plan, spec: {triggers: {schedules: [{cron: '*/10 * * * *', timezone: UTC}]}, steps: [{name: rest, type: suspend, properties: {duration: 5m}}]}}\"}\n", i)
	}
	cmdtest.WriteFiles(t, map[string]string{"f.yaml": manifests.String()})
	got := cmdtest.Offline(t, cmd.Run, "", "calendar", "-f", "f.yaml", "--from", "2026-11-21T00:00:00Z", "--to", "2026-11-22T00:00:00Z", "-o", "ics")
	const said = "warning: 201 plans: one event a day for each namespace, choose a namespace with -n, or plans with -l\n"
	if got.Code != 0 || !strings.HasSuffix(got.Err, said) || len(got.Out) > 5_000_000 {
		t.Errorf("exit code %d, %d bytes, %s", got.Code, len(got.Out), got.Err)
	}
	if !strings.Contains(got.Out, "SUMMARY:201 plans: ") {
		t.Errorf("%.2000s", got.Out)
	}
	hour := cmdtest.Offline(t, cmd.Run, "", "calendar", "-f", "f.yaml", "--from", "2026-11-21T00:00:00Z", "--to", "2026-11-21T01:00:00Z", "-o", "ics")
	if hour.Code != 0 || strings.Contains(hour.Err, "warning") || strings.Count(hour.Out, "BEGIN:VEVENT") != 6*plans {
		t.Errorf("of an hour: exit code %d, %d events, %s", hour.Code, strings.Count(hour.Out, "BEGIN:VEVENT"), hour.Err)
	}
}

// A cluster shows what files with the same documents show.
func TestCalendarOfAClusterIsThatOfItsDocuments(t *testing.T) {
	docs, _, err := source.ReadDocuments([]string{"testdata/calendar/shop.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var objects []runtime.Object
	for _, d := range docs {
		if d.Kind == source.KindNamespace {
			objects = append(objects, &corev1.Namespace{ObjectMeta: d.Object.ObjectMeta})
			continue
		}
		objects = append(objects, d.Object)
	}
	objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "else", Labels: map[string]string{"maint.dev/kind": "policy"}}, Data: map[string]string{"policy.yaml": "{apiVersion: maint.dev/v1alpha1, kind: Policy, spec: {strategy: Permissive}}"}})

	args := []string{"--from", "2026-03-23T00:00:00Z", "--to", "2026-04-08T00:00:00Z"}
	inCluster := func(flags ...string) cmdtest.Printed {
		return cmdtest.NewCluster(t, cmd.Run, objects...).Maint(slices.Concat([]string{"calendar"}, args, flags)...)
	}
	got := inCluster()
	want := cmdtest.Offline(t, cmd.Run, "", append([]string{"calendar", "-f", "testdata/calendar/shop.yaml"}, args...)...)
	got.Is(t, want)
	if all := inCluster("-A"); !strings.Contains(all.Out, "else/other") || !strings.Contains(all.Out, "shop/nightly") {
		t.Errorf("of all namespaces: %+v", all)
	}
}

// How past slots ended is told in each format.
func TestCalendarOfAClusterTellsWhatFailed(t *testing.T) {
	made := func(cm *corev1.ConfigMap) { cm.CreationTimestamp.Time = *cmdtest.Before(24 * time.Hour) }
	kept := cmdtest.Ledger(ledger.Ledger{Watermark: cmdtest.Now(), Recent: []ledger.Entry{
		{Slot: cmdtest.Before(3 * time.Hour), Result: run.Ran, Run: "a", Outcome: &ledger.Outcome{Phase: run.Failed, Step: "migrate", Message: "exit code 1"}},
		{Slot: cmdtest.Before(2 * time.Hour), Result: run.Missed, Reason: run.ReasonDeadline},
		{Slot: cmdtest.Before(time.Hour), Result: run.Ran, Run: "c", Outcome: &ledger.Outcome{Phase: run.Succeeded}},
	}})
	for format, words := range map[string][]string{
		"jsonpath={range .items[*]}{.failed}/{.idle}/{.note};{end}": {"true//Failed at migrate: exit code 1;true/true/Missed: deadline;//Succeeded in 0s;"},
		"table": {"Failed at migrate: exit code 1", "Missed: deadline", "Succeeded in 0s"},
		"svg":   {`class="slot failed"`, `class="slot idle failed"`, "failed slot of orders", "missed slot of orders", ".failed{"},
		"html":  {`badge failed`, "failed slot", "missed slot", ".badge.failed{"},
		"ics":   {"DESCRIPTION:Failed slot of plan shop/orders", "DESCRIPTION:Missed slot of plan shop/orders"},
	} {
		o := cmdtest.NewCluster(t, cmd.Run, cmdtest.Agent(), cmdtest.Namespace("shop"), cmdtest.Plan("orders", "triggers: {schedules: [{cron: '0 * * * *'}]}", made), kept)
		got := o.Maint("calendar", "--from", "2026-11-20T21:00:00Z", "--to", "2026-11-21T00:00:00Z", "-o", format)
		for _, word := range words {
			if got.Code != 0 || !strings.Contains(got.Out, word) {
				t.Errorf("%s: exit code %d, without %q:\n%s%s", format, got.Code, word, got.Out, got.Err)
			}
		}
	}
}

// What a namespace closes is known before there is any document in it.
func TestCalendarOfAClusterShowsNamespacesThatAreClosed(t *testing.T) {
	frozen := []string{annotations.ChangeStrategy, "RestrictiveUntil", annotations.RestrictiveUntil, "2026-11-22T00:00:00Z", annotations.Actor(annotations.ChangeStrategy), "jane", annotations.Reason(annotations.ChangeStrategy), "launch"}
	of := func(flag string, objects ...runtime.Object) cmdtest.Printed {
		return cmdtest.NewCluster(t, cmd.Run, append(objects, cmdtest.Namespace("open"))...).Line("calendar --from 2026-11-21T00:00:00Z --to 2026-11-23T00:00:00Z " + flag)
	}
	all := of("-A", cmdtest.Namespace("payments", frozen...), cmdtest.Namespace("halted", annotations.Pause, "true"))
	for _, want := range []string{"namespace payments", "RestrictiveUntil by jane (unverified): launch", "namespace halted", "paused"} {
		if !strings.Contains(all.Out, want) {
			t.Errorf("of all namespaces, without %q:\n%s%s", want, all.Out, all.Err)
		}
	}
	if strings.Contains(all.Out, "namespace open") || all.Code != 0 {
		t.Errorf("one that closes nothing is in it: %+v", all)
	}
	if own := of("", cmdtest.Namespace("shop", frozen...), cmdtest.Namespace("payments", frozen...)); !strings.Contains(own.Out, "namespace shop") || strings.Contains(own.Out, "payments") {
		t.Errorf("of one namespace:\n%s%s", own.Out, own.Err)
	}
	if paused := of("-A", cmdtest.Namespace("shop"), cmdtest.Namespace("maint-system", annotations.Pause, "true")); strings.Contains(paused.Out, "shop") {
		t.Errorf("a pause of the whole cluster is told of each namespace:\n%s", paused.Out)
	}
}
