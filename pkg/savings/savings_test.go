package savings

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
	"github.com/kubectl-maint/kubectl-maint/pkg/ledger"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

const round = `
currency: USD
hourly:
  ec2: {m5.large: 0.1, "*": 1, t3.free: 0}
  workload: {cpu: 0.03, memoryGiB: 0.004}
`

func at(day, hour int) time.Time { return time.Date(2026, 3, day, hour, 0, 0, 0, time.UTC) }

func TestPrices(t *testing.T) {
	if _, faults := ParsePrices([]byte(round)); len(faults) > 0 {
		t.Fatal(faults)
	}
	if _, faults := ParsePrices([]byte("currency: USD\nhourly: {ec2: {a: 1000000000}}")); len(faults) > 0 {
		t.Errorf("the highest price: %v", faults)
	}
	for name, c := range map[string]struct{ text, want string }{
		"no currency":      {"hourly: {ec2: {a: 1}}", `currency: "" is no currency`},
		"a word":           {"currency: dollars\nhourly: {ec2: {a: 1}}", `currency: "dollars" is no currency`},
		"nothing priced":   {"currency: USD", "hourly: is missing"},
		"a negative price": {"currency: USD\nhourly: {ec2: {a: -1}}", "hourly.ec2.a: must be zero or more, is -1"},
		"infinite":         {"currency: USD\nhourly: {ec2: {a: .inf}}", "hourly.ec2.a: must be a number"},
		"no real price":    {"currency: USD\nhourly: {ec2: {a: 1.7e+308}}", "hourly.ec2.a: must be at most 1000000000, is 1.7e+308"},
		"a word for one":   {"currency: USD\nhourly: {ec2: {a: dear}}", `hourly.ec2.a: must be a number`},
		"a list":           {"- 1", ""},
		"an unknown field": {"currency: USD\nhourly: {ec2: {a: 1}}\nmonthly: {}", "monthly"},
	} {
		_, faults := ParsePrices([]byte(c.text))
		if len(faults) == 0 || !strings.Contains(faults.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, faults, c.want)
		}
	}
}

func TestWhatCannotHaveSleptCountsForNothing(t *testing.T) {
	prices := &Prices{Currency: "USD", Hourly: map[string]map[string]float64{"workload": {AnyUnit: MostPrice}}}
	night := func(plan string, slept ledger.Slept) Sleep {
		slept.Executor, slept.Resources = "workload", 1
		return Sleep{"shop", plan, at(1, 20), at(2, 6), []ledger.Slept{slept}}
	}
	got := Sum([]Sleep{
		night("a", ledger.Slept{Hours: 10, UnitHours: map[string]float64{"cpu": 1e300, "memoryGiB": 2}}),
		night("b", ledger.Slept{Hours: math.MaxFloat64, UnitHours: map[string]float64{"cpu": -1}}),
		night("c", ledger.Slept{Hours: 10, UnitHours: map[string]float64{"cpu": mostHours}}),
		night("d", ledger.Slept{Hours: 0, UnitHours: map[string]float64{"cpu": 0}}),
	}, at(1, 0), at(5, 0), func(string) *Prices { return prices })
	want := []Row{
		{Namespace: "shop", Plan: "a", Executor: "workload", Resources: 1, Sleeps: 1, Hours: 10, Saved: 2 * MostPrice, Currency: "USD", Uncounted: []string{"cpu"}},
		{Namespace: "shop", Plan: "b", Executor: "workload", Resources: 1, Sleeps: 1, Uncounted: []string{"cpu", "hours"}},
		{Namespace: "shop", Plan: "c", Executor: "workload", Resources: 1, Sleeps: 1, Hours: 10, Saved: mostHours * MostPrice, Currency: "USD"},
		{Namespace: "shop", Plan: "d", Executor: "workload", Resources: 1, Sleeps: 1, Currency: "USD"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := json.Marshal(TotalOf(got)); err != nil {
		t.Error(err)
	}
}

func TestWhatSleepSaves(t *testing.T) {
	prices, faults := ParsePrices([]byte(round))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	deployments := ledger.Slept{Target: "apps", Executor: "workload", Kind: "Deployment", Resources: 2, Hours: 20, UnitHours: map[string]float64{"cpu": 10, "memoryGiB": 100, "gpu": 5}}
	night := func(day int, slept ...ledger.Slept) ledger.Entry {
		return ledger.Entry{Kind: run.BySchedule, Result: run.Ran, StartedAt: new(at(day, 20)), EndedAt: new(at(day+1, 6)), Slept: slept}
	}
	sleeps := SleepsOf("shop", "nights", []ledger.Entry{
		night(1, deployments), night(2, deployments, ledger.Slept{Target: "vms", Executor: "ec2", Kind: "instance", Resources: 3, Hours: 30, UnitHours: map[string]float64{"m5.large": 20, "x": 10}}),
		{Result: run.Missed, At: at(3, 6)},
		night(9, deployments),
	})
	if len(sleeps) != 3 {
		t.Fatalf("%d sleeps", len(sleeps))
	}
	sleeps = append(sleeps, Sleep{"bare", "nights", at(1, 20), at(2, 6), []ledger.Slept{{Target: "apps", Executor: "workload", Kind: "Deployment", Resources: 1, Hours: 10, UnitHours: map[string]float64{"cpu": 1}}}})
	known := func(namespace string) *Prices {
		if namespace == "shop" {
			return &prices
		}
		return nil
	}
	// From one in the morning of the second: half of the first night, all of the second.
	got := Sum(sleeps, at(2, 1), at(5, 0), known)
	want := []Row{
		{Namespace: "bare", Plan: "nights", Target: "apps", Executor: "workload", Kind: "Deployment", Resources: 1, Sleeps: 1, Hours: 5, Unpriced: []string{"cpu"}},
		{Namespace: "shop", Plan: "nights", Target: "apps", Executor: "workload", Kind: "Deployment", Resources: 2, Sleeps: 2, Hours: 30, Saved: 1.5 * (10*0.03 + 100*0.004), Currency: "USD", Unpriced: []string{"gpu"}},
		{Namespace: "shop", Plan: "nights", Target: "vms", Executor: "ec2", Kind: "instance", Resources: 3, Sleeps: 1, Hours: 30, Saved: 20*0.1 + 10*1, Currency: "USD"},
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Total{Hours: 65, Saved: map[string]float64{"USD": 1.05 + 12}}, TotalOf(got), near); diff != "" {
		t.Error(diff)
	}
	if rows := Sum(sleeps, at(20, 0), at(21, 0), known); len(rows) != 0 {
		t.Errorf("outside of the range: %+v", rows)
	}
}

func TestOnlyWhatBeganAndEndedIsASleep(t *testing.T) {
	slept := []ledger.Slept{{Target: "apps", Resources: 1, Hours: 10}}
	whole := ledger.Entry{StartedAt: new(at(1, 20)), EndedAt: new(at(2, 6)), Slept: slept}
	for name, c := range map[string]struct {
		edit func(*ledger.Entry)
		want int
	}{
		"a night":                      {func(*ledger.Entry) {}, 1},
		"one in which nothing slept":   {func(e *ledger.Entry) { e.Slept = nil }, 0},
		"one that has not ended":       {func(e *ledger.Entry) { e.EndedAt = nil }, 0},
		"one that has not begun":       {func(e *ledger.Entry) { e.StartedAt = nil }, 0},
		"a slot at which nothing came": {func(e *ledger.Entry) { *e = ledger.Entry{Result: run.Missed, At: at(3, 6)} }, 0},
	} {
		e := whole
		c.edit(&e)
		if got := SleepsOf("shop", "nights", []ledger.Entry{e}); len(got) != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestThePageOfWhatSleepSaved(t *testing.T) {
	rows := []Row{
		{Namespace: "shop", Plan: "b", Target: "apps", Kind: "Deployment", Resources: 2, Sleeps: 3, Hours: 10, Saved: 1.5, Currency: "USD"},
		{Namespace: "shop", Plan: "b", Target: "vms", Kind: "instance", Resources: 1, Sleeps: 3, Hours: 30, Unpriced: []string{"m5.large", "x<y>"}},
		{Namespace: "shop", Plan: "a", Target: "apps", Kind: "Deployment", Resources: 1, Sleeps: 1, Hours: 0.01},
		{Namespace: "shop", Plan: "d", Target: "apps", Kind: "Deployment", Resources: 1, Sleeps: 1, Hours: 20, Saved: 1, Currency: "EUR"},
		{Namespace: "shop", Plan: "c", Target: "apps", Kind: "Deployment", Resources: 1, Sleeps: 1, Hours: 20},
	}
	r := Report{From: at(1, 0), To: at(8, 0), Rows: rows}
	want := page{
		Span: "Sun 2026-03-01 00:00 UTC to Sun 2026-03-08 00:00 UTC", Total: "80.0 hours, 1.00 EUR, 1.50 USD", Height: 104,
		Bars: []bar{
			{Plan: "shop/b", Text: "40.0 h", Y: 0, Width: 420},
			{Plan: "shop/c", Text: "20.0 h", Y: 26, Width: 210},
			{Plan: "shop/d", Text: "20.0 h", Y: 52, Width: 210},
			{Plan: "shop/a", Text: "0.0 h", Y: 78, Width: 1},
		},
		Rows: []line{
			{Plan: "shop/b", Target: "apps", Kind: "Deployment", Resources: "2", Sleeps: "3", Hours: "10.0", Saved: "1.50 USD"},
			{Plan: "shop/b", Target: "vms", Kind: "instance", Resources: "1", Sleeps: "3", Hours: "30.0", Note: "no price of m5.large, x<y>"},
			{Plan: "shop/a", Target: "apps", Kind: "Deployment", Resources: "1", Sleeps: "1", Hours: "0.0"},
			{Plan: "shop/d", Target: "apps", Kind: "Deployment", Resources: "1", Sleeps: "1", Hours: "20.0", Saved: "1.00 EUR"},
			{Plan: "shop/c", Target: "apps", Kind: "Deployment", Resources: "1", Sleeps: "1", Hours: "20.0"},
		},
	}
	if diff := cmp.Diff(want, r.page()); diff != "" {
		t.Error(diff)
	}
	if html := r.HTML(); !strings.Contains(html, "no price of m5.large, x&lt;y&gt;") || strings.Contains(html, "Nothing slept") {
		t.Error(html)
	}
	if html := (Report{From: at(1, 0), To: at(8, 0)}).HTML(); !strings.Contains(html, "Nothing slept in this time.") {
		t.Error(html)
	}
}

func TestThePictureHasThePlansThatSleptLongest(t *testing.T) {
	var r Report
	for i := range barsShown + 2 {
		r.Rows = append(r.Rows, Row{Namespace: "shop", Plan: fmt.Sprintf("p%02d", i), Hours: float64(i)})
	}
	bars := r.bars()
	if len(bars) != barsShown || bars[0].Plan != "shop/p21" || bars[barsShown-1].Plan != "shop/p02" {
		t.Errorf("%+v", bars)
	}
	if bars := (Report{Rows: []Row{{Namespace: "shop", Plan: "a"}}}).bars(); len(bars) != 1 || bars[0].Width != 1 {
		t.Errorf("of a sleep of no time: %+v", bars)
	}
}

func TestASleepOfNoLengthCountsWhereItBegan(t *testing.T) {
	s := Sleep{Began: at(2, 20), Ended: at(2, 20)}
	if overlap(s, at(2, 20), at(2, 21)) != 1 || overlap(s, at(2, 21), at(2, 22)) != 0 || overlap(s, at(2, 19), at(2, 20)) != 0 {
		t.Error("it counts elsewhere")
	}
}

// The prices that people begin with can be read, and docs/operations.md shows the same.
func TestThePricesOfTheExampleCount(t *testing.T) {
	example, page := read(t, "../../examples/prices.yaml"), read(t, "../../docs/operations.md")
	_, text, found := strings.Cut(example, "  prices.yaml: |\n")
	if !found || !strings.Contains(page, text) {
		t.Errorf("docs/operations.md does not show\n%s", text)
	}
	prices, faults := ParsePrices([]byte(text))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	want := map[string]map[string]float64{
		"workload": {"cpu": 0.03, "memoryGiB": 0.004}, "ec2": {"m5.large": 0.10, "*": 0.05}, "asg": {"m5.large": 0.10}, "eks": {"m5.large": 0.10, "nodes": 0.10}, "rds": {"db.t3.medium": 0.08},
	}
	if diff := cmp.Diff(Prices{Currency: "USD", Hourly: want}, prices); diff != "" {
		t.Error(diff)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// What is put back does not save anything from when it was seen awake.
func TestWhatIsPutBackSavesNothing(t *testing.T) {
	back := hibernate.Resource{Kind: "Deployment", Units: map[string]float64{"cpu": 2}, AsleepAt: new(at(2, 20)), AwakeAt: new(at(2, 23)), Slept: 3600, Revived: 2}
	got := SleptIn([]hibernate.Record{{Target: "web", Executor: "workload", Resources: []hibernate.Resource{back}}}, at(3, 6))
	if diff := cmp.Diff([]ledger.Slept{{Target: "web", Executor: "workload", Kind: "Deployment", Resources: 1, Hours: 4, UnitHours: map[string]float64{"cpu": 8}}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestHowLongWhatSlept(t *testing.T) {
	asleep := func(kind string, hours int, units map[string]float64) hibernate.Resource {
		return hibernate.Resource{Kind: kind, Units: units, AsleepAt: new(at(2, 20)), WokenAt: new(at(2, 20).Add(time.Duration(hours) * time.Hour))}
	}
	got := SleptIn([]hibernate.Record{
		{Target: "web", Executor: "workload", Resources: []hibernate.Resource{
			asleep("Deployment", 2, map[string]float64{"cpu": 1.5}), asleep("Deployment", 4, map[string]float64{"cpu": 1, "memoryGiB": 2}), asleep("CronJob", 1, nil),
			{Kind: "StatefulSet"},
		}},
		{Target: "db", Executor: "rds", Resources: []hibernate.Resource{asleep("", 10, map[string]float64{"db.t3.medium": 1})}},
	}, at(3, 12))
	want := []ledger.Slept{
		{Target: "web", Executor: "workload", Kind: "CronJob", Resources: 1, Hours: 1, UnitHours: map[string]float64{}},
		{Target: "web", Executor: "workload", Kind: "Deployment", Resources: 2, Hours: 6, UnitHours: map[string]float64{"cpu": 7, "memoryGiB": 8}},
		{Target: "db", Executor: "rds", Kind: "rds", Resources: 1, Hours: 10, UnitHours: map[string]float64{"db.t3.medium": 10}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Kinds are words of a function or of another cluster: a target of a thousand would be as many
// series in the metrics, and lines of its ledger.
func TestATargetHasSoManyKindsAndNoMore(t *testing.T) {
	record := hibernate.Record{Target: "web", Executor: "function"}
	for i := range 1000 {
		kind := fmt.Sprintf("kind-%d-%s", i, strings.Repeat("x", 1000))
		record.Resources = append(record.Resources, hibernate.Resource{Kind: kind, Units: map[string]float64{"vm": 1}, AsleepAt: new(at(2, 20))})
	}
	got := SleptIn([]hibernate.Record{record}, at(2, 21))
	if len(got) != mostKinds+1 {
		t.Errorf("there are %d kinds, want %d and the rest", len(got), mostKinds)
	}
	sum := ledger.Slept{Target: "web", Executor: "function", Kind: "function", UnitHours: map[string]float64{}}
	for _, one := range got {
		if len(one.Kind) > longestKind {
			t.Errorf("a kind has %d bytes", len(one.Kind))
		}
		sum.Resources, sum.Hours, sum.UnitHours["vm"] = sum.Resources+one.Resources, sum.Hours+one.Hours, sum.UnitHours["vm"]+one.UnitHours["vm"]
	}
	if diff := cmp.Diff(ledger.Slept{Target: "web", Executor: "function", Kind: "function", Resources: 1000, Hours: 1000, UnitHours: map[string]float64{"vm": 1000}}, sum); diff != "" {
		t.Error(diff)
	}
}
