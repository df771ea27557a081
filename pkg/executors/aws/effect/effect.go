// Package effect has requests made that change something in an account of AWS: each asks
// the fence first, and what AWS refuses of many at once is asked for one by one.
package effect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/hibernate"
)

// One makes one request that changes something, where another agent cannot lead yet.
func One(ctx context.Context, call executors.SleepCall, do func(ctx context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if call.Clients.Fence != nil {
		if err := call.Clients.Fence(); err != nil {
			return err
		}
	}
	if call.DryRun {
		return nil
	}
	return do(ctx)
}

// Many asks for all of some ids at once, in lists of so many. A list that AWS refuses for
// what is in it is asked for one by one, so that one resource spoils nothing for others.
// what says what is done: "stop".
func Many(ctx context.Context, call executors.SleepCall, what string, ids []string, atOnce int, do func(ctx context.Context, ids []string) error) []executors.SleepResult {
	var out []executors.SleepResult
	for list := range slices.Chunk(ids, atOnce) {
		err := One(ctx, call, func(ctx context.Context) error { return do(ctx, list) })
		if len(list) > 1 && OfOne(err) {
			for _, id := range list {
				out = append(out, Result(id, what, One(ctx, call, func(ctx context.Context) error { return do(ctx, []string{id}) })))
			}
			continue
		}
		for _, id := range list {
			out = append(out, Result(id, what, err))
		}
	}
	return out
}

// Each does something to one resource after the other. One that is refused keeps no other
// from its turn; where AWS has too much to do, the others are left for the next pass.
func Each(ctx context.Context, due []hibernate.Due, do func(d hibernate.Due) error) []executors.SleepResult {
	var out []executors.SleepResult
	for _, d := range due {
		err := ctx.Err()
		if err == nil {
			err = do(d)
		}
		refused := refusedError{}
		out = append(out, executors.SleepResult{ID: d.ID, Err: err, Untouched: errors.As(err, &refused)})
		if ctx.Err() != nil || throttled(err) {
			break
		}
	}
	return out
}

// refusedError is the refusal of the one request that changes a resource.
type refusedError struct{ error }

// Unwrap is the refusal itself.
func (e refusedError) Unwrap() error { return e.error }

// Only marks the refusal of who asks where no other request changes the resource: it is for
// certain as it was.
func Only(err error) error {
	if Denied(err) {
		return refusedError{err}
	}
	return err
}

// Result is what came of asking for one resource.
func Result(id, what string, err error) executors.SleepResult {
	if err != nil {
		err = fmt.Errorf("%s %s: %w", what, id, Plain(err))
	}
	return executors.SleepResult{ID: id, Err: err, Untouched: Denied(err)}
}

// OfOne says whether a refusal may be that of one resource among several: AWS answered,
// and did not say that it has too much to do.
func OfOne(err error) bool {
	var answer smithy.APIError
	return errors.As(err, &answer) && !throttled(err)
}

func throttled(err error) bool {
	return retry.ThrottleErrorCode{Codes: retry.DefaultThrottleErrorCodes}.IsErrorThrottle(err) == aws.TrueTernary
}

// Passes says whether the same request may be answered otherwise a moment later: AWS did not
// answer, has too much to do, or is broken. What it says of the request itself is its word,
// and what kept a request from being made is that of whoever kept it.
func Passes(err error) bool {
	var answer smithy.APIError
	var rules interface{ Refused() string }
	var credentials *executors.CredentialsError
	switch {
	case err == nil || errors.As(err, &rules):
		return false
	case errors.As(err, &credentials):
		return credentials.Outcome.State == executors.NotYet
	case errors.As(err, &answer):
		return throttled(err) || answer.ErrorFault() == smithy.FaultServer || broken(err)
	}
	var operation interface{ Operation() string }
	return errors.As(err, &operation)
}

// broken says whether AWS answered that the fault is its own.
func broken(err error) bool {
	var status interface{ HTTPStatusCode() int }
	return errors.As(err, &status) && status.HTTPStatusCode() >= http.StatusInternalServerError
}

// Denied says whether AWS refuses who asks: a right is missing, or the credentials are not
// taken.
func Denied(err error) bool {
	return slices.Contains([]string{
		"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "NotAuthorized", "AuthFailure", "InvalidClientTokenId", "UnrecognizedClientException",
		"SignatureDoesNotMatch", "ExpiredToken", "ExpiredTokenException", "InvalidIdentityToken", "OptInRequired",
	}, Code(err))
}

// Code is the word by which AWS calls an error; empty where it did not answer.
func Code(err error) string {
	var answer smithy.APIError
	if !errors.As(err, &answer) {
		return ""
	}
	return answer.ErrorCode()
}

// plainError is an error of the SDK in words for a person: without the names of its
// layers, requests and hosts. It still is that error.
type plainError struct{ err error }

// Plain says what AWS answered, and no more; where there were no credentials to ask with, why.
func Plain(err error) error {
	var answer smithy.APIError
	var credentials *executors.CredentialsError
	if errors.As(err, &credentials) {
		return credentials
	}
	if err == nil || !errors.As(err, &answer) {
		return err
	}
	return plainError{err}
}

// Error is AWS's word and its sentence.
func (e plainError) Error() string {
	var answer smithy.APIError
	errors.As(e.err, &answer)
	return strings.TrimSpace(answer.ErrorCode() + ": " + withoutKeys(answer.ErrorMessage()))
}

// Unwrap is the error itself.
func (e plainError) Unwrap() error { return e.err }

// HideKeys has the errors of a configuration's requests told without keys, also those
// that are never put into Plain's words.
func HideKeys(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("HideKeys", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		out, metadata, err := next.HandleInitialize(ctx, in)
		if err != nil {
			err = keylessError{err}
		}
		return out, metadata, err
	}), middleware.Before)
}

// keylessError is an error of the SDK without keys. It still is that error.
type keylessError struct{ err error }

func (e keylessError) Error() string { return withoutKeys(e.err.Error()) }

// Unwrap is the error itself.
func (e keylessError) Unwrap() error { return e.err }

// withoutKeys takes out what AWS repeats of whoever asked: the ids of access keys, and what
// was to be signed, which holds the token of a session. Errors go into statuses, Events and
// messages, and those have other readers than the Secret.
func withoutKeys(text string) string {
	for _, rest := range []string{"Encoded authorization failure message:", "The Canonical String for this request should have been"} {
		text, _, _ = strings.Cut(text, rest)
	}
	return strings.TrimSpace(accessKey().ReplaceAllString(text, "$1***"))
}

// accessKey finds ids of access keys: of users, of sessions, of services and of contexts.
func accessKey() *regexp.Regexp { return regexp.MustCompile(`(AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}`) }
