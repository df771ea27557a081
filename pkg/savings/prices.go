// Package savings sums up how long resources slept, and what that saved.
package savings

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// Prices are what an hour of something costs. A price of zero says that nothing is saved.
type Prices struct {
	Currency string `json:"currency"` // as ISO 4217 has it: USD
	// Hourly is by type of target, then by unit: an instance type, or cpu and memoryGiB of
	// workloads. The unit "*" is any that has no price of its own.
	Hourly map[string]map[string]float64 `json:"hourly"`
}

// MostPrice is more than anything costs an hour, in any currency (a guess).
const MostPrice = 1e9

// AnyUnit stands for each unit that has no price of its own.
const AnyUnit = "*"

// ParsePrices reads prices and reports all their faults.
func ParsePrices(text []byte) (Prices, document.Faults) {
	var p Prices
	c, ok := document.Read(text, &p)
	if !ok {
		return p, c.Faults()
	}
	if len(p.Currency) != 3 || strings.ToUpper(p.Currency) != p.Currency {
		c.Fault("currency", "%q is no currency; write its three letters, as USD", document.Cut(p.Currency, 20))
	}
	if len(p.Hourly) == 0 {
		c.Fault("hourly", "is missing: it says what an hour costs, as {ec2: {m5.large: 0.096}}")
	}
	for _, executor := range slices.Sorted(maps.Keys(p.Hourly)) {
		for _, unit := range slices.Sorted(maps.Keys(p.Hourly[executor])) {
			switch price := p.Hourly[executor][unit]; {
			case price < 0 || math.IsNaN(price):
				c.Fault("hourly."+executor+"."+unit, "must be zero or more, is %v", price)
			case price > MostPrice:
				c.Fault("hourly."+executor+"."+unit, "must be at most %d, is %g", int64(MostPrice), price)
			}
		}
	}
	return p, c.Faults()
}

// of is the price of a unit; false: it has none.
func (p *Prices) of(executor, unit string) (float64, bool) {
	if p == nil {
		return 0, false
	}
	if price, ok := p.Hourly[executor][unit]; ok {
		return price, true
	}
	price, ok := p.Hourly[executor][AnyUnit]
	return price, ok
}
