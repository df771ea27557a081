package walls

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// adviceOf are the commands of kubectl that the files below a folder of the commands propose on their
// own, by file. Examples of help are none: they stand in no quotes.
func adviceOf(root, folder string) (map[string][]string, error) {
	proposed := regexp.MustCompile(`'kubectl (?:%s )?[a-z-]+[^']*'`)
	found := map[string][]string{}
	err := eachFile(root, folder, func(name string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			if text, is := n.(*ast.BasicLit); is && text.Kind == token.STRING {
				found[name] = append(found[name], proposed.FindAllString(text.Value, -1)...)
			}
			return true
		})
	})
	return found, err
}

// A command that a message proposes has the flags that chose the cluster: remedy puts them into it.
func TestAdviceOnKubectlStandsInOnePlace(t *testing.T) {
	found, err := adviceOf("../..", "pkg/cmd")
	if err != nil {
		t.Fatal(err)
	}
	for name, advice := range found {
		for _, one := range advice {
			if !strings.HasPrefix(name, "pkg/cmd/remedy/") && !strings.HasPrefix(one, "'kubectl maint") && !strings.HasPrefix(one, "'kubectl krew") {
				t.Errorf("%s proposes %s: make it a method of remedy.Commands, so that it names the cluster that was asked", name, one)
			}
		}
	}
}
