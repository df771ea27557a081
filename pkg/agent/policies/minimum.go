package policies

import (
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-maint/kubectl-maint/pkg/policy"
)

// conditionShort is the type of the condition of a policy that permits less than minimumWindow.
const conditionShort = "BelowMinimumWindow"

// minimum says where a policy permits less than the agent's configuration demands, and when to look
// again. It goes by the document alone: a pause or a stanza is for a while, and has words of its own.
// It counts from the day's beginning, so that what is told stands for a day.
func (p *Controller) minimum(k types.NamespacedName, now time.Time) ([]metav1.Condition, time.Time) {
	least := p.MinimumWindow()
	document := p.Store.Plain(k.Namespace, k.Name)
	if least == nil || document == nil || !document.Ready(now) {
		return nil, time.Time{}
	}
	const day = 24 * time.Hour
	today := now.UTC().Truncate(day)
	permitted, known := policy.PermittedWithin(document, today, least.Per.Duration, least.Enough())
	if !known || permitted >= least.Enough() {
		return nil, today.Add(day)
	}
	return []metav1.Condition{{
		Type: conditionShort, Status: metav1.ConditionTrue, Reason: "TooLittleTime",
		Message: fmt.Sprintf("permits change for %g hours in the %s from %s, and minimumWindow of the agent's configuration demands %g hours", math.Round(permitted.Hours()*10)/10, lengthOf(least.Per.Duration), today.Format(time.DateOnly), least.Hours),
	}}, today.Add(day)
}

// lengthOf is a time in days where it is a number of them, else in hours.
func lengthOf(d time.Duration) string {
	if days := d.Hours() / 24; days == math.Trunc(days) {
		return fmt.Sprintf("%g days", days)
	}
	return fmt.Sprintf("%g hours", math.Round(d.Hours()*10)/10)
}
