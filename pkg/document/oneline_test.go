package document

import "testing"

func TestATextOfSomebodyElseTakesOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"rotate  logs ":                   "rotate  logs ",
		"a\n  b\r\n\n c":                  "a; b; c",
		"a\rb\vc\fd\u0085e\u2028f\u2029g": "a; b; c; d; e; f; g",
		"a\tb":                            "a b",
		"\n":                              "",
		"\x1b[31ma":                       "\x1b[31ma",
		"rotate logs\n  shop/orders  run asks\n    'kubectl maint x'": "rotate logs; shop/orders  run asks; 'kubectl maint x'",
	} {
		if got := OneLine(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestAFaultTakesOneLine(t *testing.T) {
	if got := (Fault{Path: "a\nb", Message: "is\nwrong"}).String(); got != "a; b: is; wrong" {
		t.Errorf("%q", got)
	}
}
