package print

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/view"
	"github.com/kubectl-maint/kubectl-maint/pkg/schedule"
)

// VerdictLines say a verdict to a person.
func VerdictLines(s view.Subject, v schedule.Verdict, at time.Time) []string {
	lines := []string{fmt.Sprintf("%s: %s (%s)", s, view.Permission(v), instant.InText(strings.TrimPrefix(v.Reason, s.Kind+" "+s.Name+": "), s.Zone))}
	if v.Since != nil {
		lines = append(lines, "since "+instant.Both(*v.Since, s.Zone))
	}
	switch {
	case v.Hidden():
		lines = append(lines, "until that can be read, or the agent says it")
	case !v.Ready:
		lines = append(lines, "until that is mended")
	case v.Later != "":
		lines = append(lines, strings.TrimPrefix(v.Later, "; "))
	case v.Until == nil:
		lines = append(lines, "until somebody changes it")
	default:
		lines = append(lines, "until "+instant.Both(*v.Until, s.Zone)+", in "+instant.Approximate(v.Until.Sub(at))+instant.InText(strings.ReplaceAll(v.AfterFreeze, ": "+s.Kind+" "+s.Name+": ", ": "), s.Zone))
	}
	if v.Next != nil {
		then := "not permitted"
		if v.Next.Permitted {
			then = "permitted"
		}
		until := ""
		if v.Next.End != nil {
			until = " until " + instant.Both(*v.Next.End, s.Zone)
		}
		lines = append(lines, "then "+then+until)
	}
	return lines
}
