package sample

import (
	"os"
	"testing"
)

func TestSample(t *testing.T) {
	if os.Getenv("SAMPLE_FAILS") != "" {
		t.Fatal("as asked")
	}
	if More != 3 || Name("a", "b") != "ab" {
		t.Error(More, Name("a", "b"))
	}
	if !Within(2, 1, 3) || Within(3, 1, 3) || Within(0, 1, 3) {
		t.Error("within")
	}
	if Sum(1, 2, true) != 3 || Sum(1, 2, false) != 1 || Sum(4, 0, true) != 4 {
		t.Error("sum")
	}
}
