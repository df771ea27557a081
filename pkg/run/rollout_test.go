package run_test

import (
	"testing"
	"time"

	"github.com/kubectl-maint/kubectl-maint/pkg/plan"
	"github.com/kubectl-maint/kubectl-maint/pkg/run"
)

func TestWhichStepsRelyOnAClosedNode(t *testing.T) {
	r := runOf(t, "steps: [{name: roll, type: for-each-node, properties: {steps: ["+
		"{name: first, type: webhook, properties: {url: 'https://example.org'}}, {name: drain, type: drain}, {name: reboot, type: webhook, properties: {url: 'https://example.org'}},"+
		" {name: uncordon, type: uncordon}, {name: last, type: webhook, properties: {url: 'https://example.org'}}, {name: other, type: drain, properties: {node: another}}]}}]")
	at := func(minute int) *time.Time {
		out := time.Date(2026, 5, 1, 2, minute, 0, 0, time.UTC)
		return &out
	}
	done := func(name, kind string, minute int) run.Record {
		return run.Record{Path: "roll/n0/" + name, Type: kind, Phase: run.StepSucceeded, Attempt: 1, FinishedAt: at(minute)}
	}
	works := func(name, kind string, attempt, seen int) run.Record {
		return run.Record{Path: "roll/n0/" + name, Type: kind, Phase: run.StepRunning, Attempt: attempt, NodeSeen: seen}
	}
	for name, c := range map[string]struct {
		steps  []run.Record
		dryRun bool
		want   bool
	}{
		"before the drain":                     {steps: []run.Record{works("first", "webhook", 1, 0)}},
		"the drain itself":                     {steps: []run.Record{works("drain", "drain", 1, 0)}},
		"after the drain":                      {steps: []run.Record{done("drain", "drain", 1), works("reboot", "webhook", 1, 0)}, want: true},
		"once it has begun":                    {steps: []run.Record{done("drain", "drain", 1), works("reboot", "webhook", 1, 1)}},
		"at its next attempt":                  {steps: []run.Record{done("drain", "drain", 1), works("reboot", "webhook", 2, 1)}, want: true},
		"the uncordon":                         {steps: []run.Record{done("drain", "drain", 1), works("uncordon", "uncordon", 1, 0)}},
		"after the uncordon":                   {steps: []run.Record{done("drain", "drain", 1), done("uncordon", "uncordon", 2), works("last", "webhook", 1, 0)}},
		"after the drain of another node":      {steps: []run.Record{done("other", "drain", 1), works("last", "webhook", 1, 0)}},
		"a drain that failed closed nothing":   {steps: []run.Record{{Path: "roll/n0/drain", Type: "drain", Phase: run.StepFailed, FinishedAt: at(1)}, works("reboot", "webhook", 1, 0)}},
		"nor does the drain of another item":   {steps: []run.Record{{Path: "roll/n1/drain", Type: "drain", Phase: run.StepSucceeded, FinishedAt: at(1)}, works("reboot", "webhook", 1, 0)}},
		"nor one that is only rehearsed":       {steps: []run.Record{done("drain", "drain", 1), works("reboot", "webhook", 1, 0)}, dryRun: true},
		"the last of drain and uncordon tells": {steps: []run.Record{done("drain", "drain", 3), done("uncordon", "uncordon", 2), works("reboot", "webhook", 1, 0)}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			r.Request.DryRun = c.dryRun
			loop := run.Record{Path: "roll", Type: plan.TypeForEachNode, Phase: run.StepRunning, Listed: true, Items: []run.Item{{Name: "n0", UID: "u0", Phase: run.StepRunning}}}
			j := run.Journal{Steps: append([]run.Record{loop}, c.steps...)}
			item, got := r.ClosedNode(j, c.steps[len(c.steps)-1].Path)
			if got != c.want || got && item.UID != "u0" {
				t.Errorf("relies %t on %+v, want %t", got, item, c.want)
			}
		})
	}
}
