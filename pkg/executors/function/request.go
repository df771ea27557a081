package function

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/kubectl-maint/kubectl-maint/pkg/executors"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/function/fnv1"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/api"
	"github.com/kubectl-maint/kubectl-maint/pkg/executors/internal/mask"
)

// watchedName is the name under which operations pass the object whose change triggered them.
const watchedName = "ops.crossplane.io/watched-resource"

// MaxSize limits requests and answers: gRPC servers accept this much by default.
const MaxSize = 4 << 20

// prepare makes the request, reads the credentials, and finds out where the function is.
func (c *conversation) prepare(ctx context.Context) error {
	c.request = &fnv1.RunFunctionRequest{Observed: &fnv1.State{}, Desired: &fnv1.State{}}
	if c.props.Input != nil {
		input, err := structpb.NewStruct(c.props.Input)
		if err != nil {
			return api.Refuse(executors.ReasonInvalid, "input: %s", err)
		}
		c.request.Input = input
	}
	c.show(nil)
	if err := c.addCredentials(ctx); err != nil {
		return err
	}
	return c.locate(ctx)
}

// given is what the functions of a step see without asking. They share it: in the form in which it is
// sent it takes many times its bytes.
func given(call executors.Call) (map[string]*fnv1.Resources, error) {
	all := map[string][]map[string]any{}
	maps.Copy(all, call.Objects.Required)
	if call.Objects.Watched != nil {
		all[watchedName] = []map[string]any{call.Objects.Watched}
	}
	out := map[string]*fnv1.Resources{}
	for name, objects := range all {
		resources, err := toResources(objects)
		if err != nil {
			return nil, api.Refuse(executors.ReasonInvalid, "required resource %q cannot be handed to a function: %s", name, err)
		}
		out[name] = resources
	}
	return out, nil
}

func toResources(objects []map[string]any) (*fnv1.Resources, error) {
	out := &fnv1.Resources{}
	for _, object := range objects {
		s, err := structpb.NewStruct(object)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, &fnv1.Resource{Resource: s})
	}
	return out, nil
}

// show puts the objects into the request, under the present field name and the older one.
func (c *conversation) show(found map[string]*fnv1.Resources) {
	all := map[string]*fnv1.Resources{}
	maps.Copy(all, c.given)
	maps.Copy(all, found)
	c.request.RequiredResources = all
	c.request.ExtraResources = all // older functions know only this field
}

// addCredentials reads the Secrets, and remembers what must not be shown.
func (c *conversation) addCredentials(ctx context.Context) error {
	c.request.Credentials = map[string]*fnv1.Credentials{}
	allowed := c.allowed()
	for _, credential := range c.props.Credentials {
		secret, err := api.ReadSecret(ctx, c.call, credential.SecretName)
		if err != nil {
			return err
		}
		if err := allowed.take(c, secret); err != nil {
			return err
		}
		c.request.Credentials[credential.Name] = &fnv1.Credentials{
			Source: &fnv1.Credentials_CredentialData{CredentialData: &fnv1.CredentialData{Data: secret.Data}},
		}
		for _, value := range secret.Data {
			text := string(value)
			c.secrets = append(c.secrets, text, strings.TrimSpace(text))
		}
	}
	c.mask = mask.New(c.secrets)
	return nil
}

// seal writes the request's meta. The tag covers everything that the function sees, so that a
// function which caches answers by tag never takes another round, or a changed world, for the same
// request.
func (c *conversation) seal() error {
	c.request.Meta = nil
	if size := proto.Size(c.request); size > MaxSize { // before there is a second one of it
		return api.Refuse(executors.ReasonTooLarge, "%s cannot be asked: input, credentials, required objects and what is desired so far are %d bytes together, and %d are the most; require fewer objects", c, size, MaxSize)
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(c.request)
	if err != nil {
		return api.Refuse(executors.ReasonInvalid, "%s cannot be asked: %s", c, err)
	}
	tag := sha256.New()
	tag.Write([]byte(c.call.Plan.Namespace + "/" + c.call.IdempotencyKey() + "\n"))
	if c.name != "" { // the same function may stand in a pipeline twice
		tag.Write([]byte(c.name + "\n"))
	}
	tag.Write(b)
	c.request.Meta = &fnv1.RequestMeta{Tag: hex.EncodeToString(tag.Sum(nil)), Capabilities: capabilities()}
	return nil
}

// capabilities are those that we support. Conditions belong to composite resources: they are
// accepted and ignored. Schemas are not supported, so a function that would like one knows that it
// gets none.
func capabilities() []fnv1.Capability {
	return []fnv1.Capability{
		fnv1.Capability_CAPABILITY_CAPABILITIES,
		fnv1.Capability_CAPABILITY_REQUIRED_RESOURCES,
		fnv1.Capability_CAPABILITY_CREDENTIALS,
		fnv1.Capability_CAPABILITY_CONDITIONS,
	}
}
