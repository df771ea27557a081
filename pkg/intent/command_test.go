package intent

import "testing"

func TestACommandLineNamesTheNamespaceOfItsObject(t *testing.T) {
	for want, c := range map[string][3]string{
		"'kubectl maint -n shop approve r/ask'": {"shop", "approve", "r/ask"},
		"'kubectl maint approve r'":             {"", "approve", "r"},
		"'kubectl maint -n shop resume --all'":  {"shop", "resume --all", ""},
	} {
		if got := Command(c[0], c[1], c[2]); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
