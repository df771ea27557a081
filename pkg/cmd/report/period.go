package report

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/exit"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/factory"
	"github.com/kubectl-maint/kubectl-maint/pkg/cmd/instant"
	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// period is the time that a view of the past is asked for.
type period struct{ last, from, to string }

func (p *period) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&p.last, "last", "30d", "how far back from its end")
	flags.StringVar(&p.from, "from", "", "the first instant, in place of --last; a duration like 7d is before now, \"sat 02:00\" the last one")
	flags.StringVar(&p.to, "to", "", "the instant at which it ends; default now")
}

// echo says which period was understood, for output that does not say it.
func (p *period) echo(env factory.Env, start, end time.Time) {
	if p.from != "" || p.to != "" {
		fmt.Fprintf(env.ErrOut, "from %s to %s\n", instant.Both(start, env.Zone), instant.Both(end, env.Zone))
	}
}

// span is the period from when to when; lastGiven: somebody gave --last.
func (p period) span(env factory.Env, lastGiven bool, f *exit.Faults) (start, end time.Time) {
	now := env.Now()
	end = now
	if p.to != "" {
		at, err := instant.Past(p.to, now, env.Zone)
		f.Check(err)
		end = at
	}
	back, err := document.ParseDuration(p.last)
	switch {
	case err != nil:
		f.Add("--last: %v", err)
	case lastGiven && p.from != "":
		f.Add("--last excludes --from: both say when it begins")
	case back.Duration <= 0:
		f.Add("--last must be longer than 0s, is %s", p.last)
	}
	start = end.Add(-back.Duration)
	if p.from != "" {
		at, err := instant.Past(p.from, now, env.Zone)
		f.Check(err)
		start = at
	}
	switch {
	case len(*f) > 0 || start.Before(end):
	case p.to == "":
		f.Add("--from %s is not before now", instant.Both(start, env.Zone))
	default:
		f.Add("--to %s is not after --from %s", instant.Both(end, env.Zone), instant.Both(start, env.Zone))
	}
	return start, end
}
