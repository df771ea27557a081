// Package effect makes the requests that change something in an account of AWS. Each asks the fence
// first. What AWS refuses for several resources at once is asked for one by one.
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

// One makes one request that changes something, unless another agent may lead by now.
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

// Many asks for some ids in lists of limited length. A list that AWS refuses because of one
// resource is asked for one by one, so that the others are not held up. what is the verb: "stop".
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

// Each does something to one resource after the other. A refusal of one does not stop the others;
// when AWS throttles, the rest is left for the next pass.
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

// Only marks a refusal as that of the only request that changes the resource: nothing was done to
// it.
func Only(err error) error {
	if Denied(err) {
		return refusedError{err}
	}
	return err
}

// Result is the result for one resource.
func Result(id, what string, err error) executors.SleepResult {
	if err != nil {
		err = fmt.Errorf("%s %s: %w", what, id, WithoutDetails(err))
	}
	return executors.SleepResult{ID: id, Err: err, Untouched: Denied(err)}
}

// OfOne says whether a refusal may be about one resource among several: AWS answered, and it was
// not throttling.
func OfOne(err error) bool {
	var answer smithy.APIError
	return errors.As(err, &answer) && !throttled(err)
}

func throttled(err error) bool {
	return retry.ThrottleErrorCode{Codes: retry.DefaultThrottleErrorCodes}.IsErrorThrottle(err) == aws.TrueTernary
}

// IsTransient says whether the same request may succeed a moment later: AWS did not answer, throttles,
// or has a fault of its own. An answer about the request itself does not pass; of an error that
// kept a request from being made, its source decides.
func IsTransient(err error) bool {
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

// broken says whether AWS reported a fault of its own.
func broken(err error) bool {
	var status interface{ HTTPStatusCode() int }
	return errors.As(err, &status) && status.HTTPStatusCode() >= http.StatusInternalServerError
}

// Denied says whether AWS refuses the caller: a right is missing, or the credentials are not
// accepted.
func Denied(err error) bool {
	return slices.Contains([]string{
		"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "NotAuthorized", "AuthFailure", "InvalidClientTokenId", "UnrecognizedClientException",
		"SignatureDoesNotMatch", "ExpiredToken", "ExpiredTokenException", "InvalidIdentityToken", "OptInRequired",
	}, Code(err))
}

// Code is the error code of AWS; empty where it did not answer.
func Code(err error) string {
	var answer smithy.APIError
	if !errors.As(err, &answer) {
		return ""
	}
	return answer.ErrorCode()
}

// plainError is an SDK error in words for people: without the names of layers, requests and hosts.
// It unwraps to the original.
type plainError struct{ err error }

// WithoutDetails says what AWS answered; where there were no credentials, why.
func WithoutDetails(err error) error {
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

// Error is the code and message of AWS.
func (e plainError) Error() string {
	var answer smithy.APIError
	errors.As(e.err, &answer)
	return strings.TrimSpace(answer.ErrorCode() + ": " + withoutKeys(answer.ErrorMessage()))
}

// Unwrap is the original error.
func (e plainError) Unwrap() error { return e.err }

// HideKeys removes keys from the errors of all requests of a configuration, also from those that
// Plain never sees.
func HideKeys(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("HideKeys", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		out, metadata, err := next.HandleInitialize(ctx, in)
		if err != nil {
			err = keylessError{err}
		}
		return out, metadata, err
	}), middleware.Before)
}

// keylessError is an SDK error without keys. It unwraps to the original.
type keylessError struct{ err error }

func (e keylessError) Error() string { return withoutKeys(e.err.Error()) }

// Unwrap is the original error.
func (e keylessError) Unwrap() error { return e.err }

// withoutKeys removes what AWS repeats of the caller: access key ids, and the canonical request,
// which holds the session token. Errors go into statuses, Events and messages, which more people
// read than the Secret.
func withoutKeys(text string) string {
	for _, rest := range []string{"Encoded authorization failure message:", "The Canonical String for this request should have been"} {
		text, _, _ = strings.Cut(text, rest)
	}
	return strings.TrimSpace(accessKey().ReplaceAllString(text, "$1***"))
}

// accessKey matches access key ids: of users, sessions, services and contexts.
func accessKey() *regexp.Regexp { return regexp.MustCompile(`(AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}`) }
