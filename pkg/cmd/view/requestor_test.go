package view

import (
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/annotations"
	"github.com/kubectl-maint/kubectl-maint/pkg/nodes"
)

func TestUsersAsRequestors(t *testing.T) {
	for user, want := range map[string]string{
		"jane":                          "cli.jane",
		"Jane@example.com":              "cli.jane-example.com",
		"system:serviceaccount:ops:bot": "cli.system-serviceaccount-ops-bot",
		"a..b-.-c_":                     "cli.a.b.c",
		"日本":                            "cli." + annotations.Hash10("日本"),
		strings.Repeat("x", 80):         "cli." + strings.Repeat("x", 48) + "-" + annotations.Hash10(strings.Repeat("x", 80)),
	} {
		got := RequestorName(user)
		if _, err := nodes.Parse(got, ""); err != nil || got != want {
			t.Errorf("%s is %s, want %s; %v", user, got, want, err)
		}
	}
}
