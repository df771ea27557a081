package mask_test

import (
	"encoding/base64"
	"runtime"
	"strings"
	"testing"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/mask"
)

func TestASecretInBase64IsHiddenWhereverItStands(t *testing.T) {
	for _, secret := range []string{"tok1", "s3cr3t-t0ken", "\xfb\xff\xfe\xfb\xff\xfe>>>???", "Bearer s3cr3t-t0ken"} {
		m := mask.New([]string{secret})
		whole := base64.RawStdEncoding.EncodeToString([]byte(secret))
		for before := range 7 {
			for after := range 4 {
				text := strings.Repeat("a", before) + secret + strings.Repeat("z", after)
				for name, encoding := range map[string]*base64.Encoding{
					"standard": base64.StdEncoding, "without padding": base64.RawStdEncoding, "URL": base64.URLEncoding, "URL, without padding": base64.RawURLEncoding,
				} {
					encoded := encoding.EncodeToString([]byte(text))
					got := m.Text(encoded)
					kept := strings.Split(got, "***")
					if len(kept) == 1 {
						t.Errorf("%q in %s behind %d bytes and before %d: %s of %s", secret, name, before, after, got, encoded)
					}
					if rest := len(strings.Join(kept, "")); rest > len(encoded)-len(whole)+3 {
						t.Errorf("%q in %s behind %d bytes and before %d: %s keeps %d characters", secret, name, before, after, got, rest)
					}
				}
			}
		}
	}
}

func TestSecretsAreHiddenInEveryTextOfAValue(t *testing.T) {
	m := mask.New([]string{"s3cr3t-t0ken"})
	inside := base64.StdEncoding.EncodeToString([]byte("as3cr3t-t0ken"))
	got, _ := m.Value(map[string]any{inside: []any{inside, "x"}}).(map[string]any)
	for key, value := range got {
		if texts, _ := value.([]any); key == inside || texts[0] == inside || texts[1] != "x" {
			t.Errorf("%s: %v", key, value)
		}
	}
}

func TestShortSecretsHideNoOtherWords(t *testing.T) {
	for _, secret := range []string{"a", "ab", "abc"} {
		text := base64.StdEncoding.EncodeToString([]byte("x" + secret))
		if got := mask.New([]string{secret}).Text(text); got != text {
			t.Errorf("%q: %s of %s", secret, got, text)
		}
	}
}

// Functions of a pipeline and headers of a webhook may all name one large Secret, whose forms are dozens
// of times as long.
func TestASecretThatIsGivenManyTimesTakesTheMemoryOfOne(t *testing.T) {
	secret := "Bearer " + strings.Repeat("<\x01", 8<<10)
	many := make([]string, 0, 200)
	for range 100 {
		many = append(many, strings.Clone(secret), strings.TrimPrefix(secret, "Bearer "))
	}
	bytes := func(secrets []string) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m := mask.New(secrets)
		runtime.ReadMemStats(&after)
		if got := m.Text(secret + "."); got != "***." {
			t.Errorf("%d secrets: %.20s", len(secrets), got)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	if one, all := bytes(many[:1]), bytes(many); all > 2*one {
		t.Errorf("a secret takes %d bytes, and %d where it is given %d times", one, all, len(many))
	}
}
