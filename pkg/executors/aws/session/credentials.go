package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
)

// keysFor is for how long keys are used before the Secret is read again (a guess: after a rotation
// the old key usually works for longer than this).
const keysFor = 5 * time.Minute

// keys reads access keys from the connector's Secret again and again.
type keys func(ctx context.Context) (executors.AccessKeys, error)

// Retrieve is the SDK's.
func (k keys) Retrieve(ctx context.Context) (aws.Credentials, error) {
	got, err := k(ctx)
	if err != nil {
		return aws.Credentials{}, err
	}
	return aws.Credentials{
		AccessKeyID: got.ID, SecretAccessKey: got.Secret, SessionToken: got.Session,
		Source: "Secret", CanExpire: true, Expires: time.Now().Add(keysFor),
	}, nil
}

// identity exchanges a ServiceAccount token for the credentials of its role.
type identity struct {
	assume func(context.Context, *sts.AssumeRoleWithWebIdentityInput, ...func(*sts.Options)) (*sts.AssumeRoleWithWebIdentityOutput, error)
	token  func(ctx context.Context) (executors.WebIdentity, error)
	name   string
}

// Retrieve is the SDK's.
func (i *identity) Retrieve(ctx context.Context) (aws.Credentials, error) {
	got, err := i.token(ctx)
	if err != nil {
		return aws.Credentials{}, err
	}
	out, err := i.assume(ctx, &sts.AssumeRoleWithWebIdentityInput{
		RoleArn: aws.String(got.RoleARN), RoleSessionName: aws.String(i.name), WebIdentityToken: aws.String(got.Token),
	})
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("take the role %s with the ServiceAccount's token: %w", got.RoleARN, err)
	}
	c := out.Credentials
	if c == nil {
		return aws.Credentials{}, errors.New("STS gave no credentials")
	}
	return aws.Credentials{
		AccessKeyID: aws.ToString(c.AccessKeyId), SecretAccessKey: aws.ToString(c.SecretAccessKey), SessionToken: aws.ToString(c.SessionToken),
		Source: "ServiceAccount", CanExpire: true, Expires: aws.ToTime(c.Expiration),
	}, nil
}

// assumeRole is the call of STS that assumes a role. The SDK takes an interface here; its client in
// that interface would pull all other calls into the binary (text templates find methods by name,
// so the linker keeps every method of what stands in an interface).
type assumeRole func(context.Context, *sts.AssumeRoleInput, ...func(*sts.Options)) (*sts.AssumeRoleOutput, error)

// AssumeRole is the SDK's.
func (a assumeRole) AssumeRole(ctx context.Context, in *sts.AssumeRoleInput, options ...func(*sts.Options)) (*sts.AssumeRoleOutput, error) {
	return a(ctx, in, options...)
}
