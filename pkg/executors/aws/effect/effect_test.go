package effect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

func answer(code string) error {
	return fmt.Errorf("operation error X: https response error StatusCode: 400, RequestID: 1, %w", &smithy.GenericAPIError{Code: code, Message: "no"})
}

var errWire = errors.New("connection reset by peer")

// asked notes what is asked for, and refuses lists with some ids in them.
type asked struct {
	lists   []string
	refuses map[string]error
}

func (a *asked) do(_ context.Context, ids []string) error {
	a.lists = append(a.lists, strings.Join(ids, " "))
	for _, id := range ids {
		if err := a.refuses[id]; err != nil {
			return err
		}
	}
	return nil
}

func said(results []executors.SleepResult) []string {
	var out []string
	for _, r := range results {
		out = append(out, fmt.Sprintf("%s: %v", r.ID, r.Err))
	}
	return out
}

func TestManyAreAskedForAtOnceAndOneByOneWhereThatIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		ids     string
		refuses map[string]error
		asked   []string
		said    []string
	}{
		"none":             {"", nil, nil, nil},
		"one":              {"a", nil, []string{"a"}, []string{"a: <nil>"}},
		"as many as go":    {"a b", nil, []string{"a b"}, []string{"a: <nil>", "b: <nil>"}},
		"more than that":   {"a b c", nil, []string{"a b", "c"}, []string{"a: <nil>", "b: <nil>", "c: <nil>"}},
		"one is refused":   {"a b c", map[string]error{"a": answer("OperationNotPermitted")}, []string{"a b", "a", "b", "c"}, []string{"a: stop a: OperationNotPermitted: no", "b: <nil>", "c: <nil>"}},
		"one is denied":    {"a b", map[string]error{"b": answer("UnauthorizedOperation")}, []string{"a b", "a", "b"}, []string{"a: <nil>", "b: stop b: UnauthorizedOperation: no"}},
		"a single refused": {"a", map[string]error{"a": answer("AccessDenied")}, []string{"a"}, []string{"a: stop a: AccessDenied: no"}},
		"too much to do":   {"a b", map[string]error{"a": answer("RequestLimitExceeded")}, []string{"a b"}, []string{"a: stop a: RequestLimitExceeded: no", "b: stop b: RequestLimitExceeded: no"}},
		"no answer":        {"a b", map[string]error{"a": errWire}, []string{"a b"}, []string{"a: stop a: connection reset by peer", "b: stop b: connection reset by peer"}},
	} {
		a := &asked{refuses: c.refuses}
		got := said(Many(t.Context(), executors.SleepCall{}, "stop", strings.Fields(c.ids), 2, a.do))
		if diff := cmp.Diff(c.said, got); diff != "" {
			t.Errorf("%s: it says (-want +got)\n%s", name, diff)
		}
		if diff := cmp.Diff(c.asked, a.lists); diff != "" {
			t.Errorf("%s: it asks for (-want +got)\n%s", name, diff)
		}
	}
}

func TestOneAfterTheOtherIsAskedForUntilAWSHasTooMuchToDo(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx     context.Context
		refuses map[string]error
		said    []string
	}{
		"all":            {t.Context(), nil, []string{"a: <nil>", "b: <nil>", "c: <nil>"}},
		"one is denied":  {t.Context(), map[string]error{"a": WithoutDetails(answer("AccessDenied"))}, []string{"a: AccessDenied: no", "b: <nil>", "c: <nil>"}},
		"no answer":      {t.Context(), map[string]error{"b": errWire}, []string{"a: <nil>", "b: connection reset by peer", "c: <nil>"}},
		"too much to do": {t.Context(), map[string]error{"b": Result("b", "stop", answer("ThrottlingException")).Err}, []string{"a: <nil>", "b: stop b: ThrottlingException: no"}},
		"it is over":     {ended, nil, []string{"a: context canceled"}},
	} {
		var due []hibernate.Due
		for _, id := range []string{"a", "b", "c"} {
			due = append(due, hibernate.Due{Resource: hibernate.Resource{ID: id}})
		}
		got := said(Each(c.ctx, due, func(d hibernate.Due) error { return c.refuses[d.ID] }))
		if diff := cmp.Diff(c.said, got); diff != "" {
			t.Errorf("%s: it says (-want +got)\n%s", name, diff)
		}
	}
}

func TestWhatComesBeforeARequest(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	fenced := errors.New("another agent may lead")
	for name, c := range map[string]struct {
		ctx   context.Context
		call  executors.SleepCall
		want  error
		asked bool
	}{
		"nothing":       {t.Context(), executors.SleepCall{}, nil, true},
		"a fence":       {t.Context(), executors.SleepCall{Clients: executors.Clients{Fence: func() error { return fenced }}}, fenced, false},
		"an open fence": {t.Context(), executors.SleepCall{Clients: executors.Clients{Fence: func() error { return nil }}}, nil, true},
		"a dry run":     {t.Context(), executors.SleepCall{DryRun: true}, nil, false},
		"it is over":    {ended, executors.SleepCall{}, context.Canceled, false},
	} {
		did := false
		err := One(c.ctx, c.call, func(context.Context) error { did = true; return nil })
		if !errors.Is(err, c.want) || did != c.asked {
			t.Errorf("%s: %v, and it is asked: %t", name, err, did)
		}
	}
}

func TestWhatAWSAnswersIsSaidInItsOwnWords(t *testing.T) {
	encoded := &smithy.GenericAPIError{Code: "UnauthorizedOperation", Message: "You are not authorized to perform this operation. Encoded authorization failure message: " + strings.Repeat("x", 500)}
	for name, c := range map[string]struct {
		err  error
		want string
		code string
	}{
		"an answer":           {answer("AccessDenied"), "AccessDenied: no", "AccessDenied"},
		"one with a riddle":   {encoded, "UnauthorizedOperation: You are not authorized to perform this operation.", "UnauthorizedOperation"},
		"one without a word":  {&smithy.GenericAPIError{Code: "Busy"}, "Busy:", "Busy"},
		"no answer":           {errWire, "connection reset by peer", ""},
		"an answer, wrapped":  {fmt.Errorf("list: %w", answer("Gone")), "Gone: no", "Gone"},
		"said in words twice": {WithoutDetails(WithoutDetails(answer("Gone"))), "Gone: no", "Gone"},
	} {
		got := WithoutDetails(c.err)
		if got.Error() != c.want || Code(got) != c.code || !errors.Is(got, c.err) {
			t.Errorf("%s: %q with the code %q", name, got, Code(got))
		}
	}
	if WithoutDetails(nil) != nil || Code(nil) != "" {
		t.Error("nothing is said of no error")
	}
}

func TestWhichRefusalsMayBeThoseOfOneAmongSeveral(t *testing.T) {
	throttles := []string{"Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequestsException"}
	for _, code := range append([]string{"IncorrectInstanceState", "UnsupportedOperation", "AccessDenied"}, throttles...) {
		if want := !slices.Contains(throttles, code); OfOne(answer(code)) != want {
			t.Errorf("%s: %t", code, !want)
		}
	}
	if OfOne(nil) || OfOne(errWire) {
		t.Error("without an answer nothing is known of one")
	}
}

// Who reads a status, an Event or a message in a chat is not who may read the key.
func TestWhatAWSSaysIsToldWithoutKeys(t *testing.T) {
	for name, c := range map[string]struct{ says, want string }{
		"a sentence without one":       {"You have no right to stop i-1.", "No: You have no right to stop i-1."},
		"the id of a key":              {"'Credential=AKIAIOSFODNN7EXAMPLE/20260101' not a valid key", "No: 'Credential=AKIA***/20260101' not a valid key"},
		"that of a session":            {"The key ASIAIOSFODNN7EXAMPLE, and again ASIAIOSFODNN7EXAMPLE.", "No: The key ASIA***, and again ASIA***."},
		"a word that begins so":        {"AKIA and ASIAN are words.", "No: AKIA and ASIAN are words."},
		"what was to be signed":        {"The signature does not match.\n\nThe Canonical String for this request should have been\n'POST\nx-amz-security-token:FQoGZXIvYXdz'", "No: The signature does not match."},
		"what nobody reads":            {"No right. Encoded authorization failure message: abcdef", "No: No right."},
		"a key that is part of a word": {"xAKIAIOSFODNN7EXAMPLE", "No: xAKIA***"},
	} {
		err := WithoutDetails(fmt.Errorf("operation error X: %w", &smithy.GenericAPIError{Code: "No", Message: c.says}))
		if err.Error() != c.want {
			t.Errorf("%s: it says %q, want %q", name, err, c.want)
		}
	}
}

// A resource is for certain as it was where AWS denied the one request that changes it, and where
// it was not asked for.
func TestWhatIsForCertainAsItWas(t *testing.T) {
	denied, lost := answer("UnauthorizedOperation"), errWire
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"the one request is denied":        {Only(WithoutDetails(denied)), true},
		"it is, beside a fault of another": {errors.Join(Only(WithoutDetails(denied)), WithoutDetails(answer("DBSnapshotNotFound"))), true},
		"another request is denied":        {WithoutDetails(denied), false},
		"nobody answered":                  {Only(lost), false},
		"AWS refuses it for its state":     {Only(WithoutDetails(answer("IncorrectInstanceState"))), false},
		"it was asked for":                 {nil, false},
	} {
		got := Each(t.Context(), []hibernate.Due{{Resource: hibernate.Resource{ID: "a"}}}, func(hibernate.Due) error { return c.err })
		if len(got) != 1 || got[0].Untouched != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, r := range Many(t.Context(), executors.SleepCall{}, "stop", []string{"a", "b"}, 10, func(context.Context, []string) error { return denied }) {
		if !r.Untouched {
			t.Errorf("of many: %+v", r)
		}
	}
}
