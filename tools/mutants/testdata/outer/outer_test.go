package outer

import "testing"

func TestDigit(t *testing.T) {
	if !Digit(9) || Digit(10) || Digit(-1) {
		t.Error(Digit(9), Digit(10), Digit(-1))
	}
}
