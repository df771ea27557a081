package connector

import (
	"regexp"
	"strings"

	"github.com/kubectl-maint/kubectl-maint/pkg/document"
)

// CloudDocument is a CloudProvider: the text under the key connector.yaml.
type CloudDocument struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Spec       CloudSpec `json:"spec"`
}

// TypeAWS is the one type of cloud.
const TypeAWS = "aws"

// CloudSpec is an account of a cloud, and as whom it is reached.
type CloudSpec struct {
	Type string `json:"type"` // aws
	AWS  *AWS   `json:"aws,omitempty"`
}

// AWS is an account of AWS in one region.
type AWS struct {
	AccountID     string `json:"accountId"` // 12 digits; what credentials of another account would do is refused
	Region        string `json:"region"`
	AssumeRoleARN string `json:"assumeRoleArn,omitempty"` // the role that is taken on with the credentials, if another
	Auth          Auth   `json:"auth"`
}

// Auth is where credentials come from: exactly one of its fields. The agent has none of
// its own.
type Auth struct {
	ServiceAccount *ServiceAccountAuth `json:"serviceAccount,omitempty"`
	Static         *StaticAuth         `json:"static,omitempty"`
}

// ServiceAccountAuth takes the token of the plan's ServiceAccount, and with it the role
// that its annotation eks.amazonaws.com/role-arn names.
type ServiceAccountAuth struct{}

// StaticAuth takes access keys from a Secret, read as the plan's ServiceAccount.
type StaticAuth struct {
	SecretRef Ref `json:"secretRef"` // with the keys accessKeyId, secretAccessKey and, for temporary ones, sessionToken
}

func cloud(c *document.Checker, s CloudSpec) {
	switch s.Type {
	case TypeAWS:
	case "":
		c.Fault("spec.type", "is missing; there is %s", TypeAWS)
		return
	default:
		c.Fault("spec.type", "%q is not supported; there is %s", document.Cut(s.Type, 100), TypeAWS)
		return
	}
	if s.AWS == nil {
		c.Fault("spec.aws", "is missing: accountId, region and auth")
		return
	}
	awsAccount(c, *s.AWS)
	auth(c, s.AWS.Auth)
}

func awsAccount(c *document.Checker, a AWS) {
	switch {
	case a.AccountID == "":
		c.Fault("spec.aws.accountId", "is missing: the 12 digits of the account")
	case !AccountID(a.AccountID):
		c.Fault("spec.aws.accountId", "%q is no account of AWS: write its 12 digits, in quotes", document.Cut(a.AccountID, 100))
	}
	region(c, "spec.aws.region", a.Region, true)
	if a.AssumeRoleARN == "" {
		return
	}
	account, ok := RoleAccount(a.AssumeRoleARN)
	switch {
	case !ok:
		c.Fault("spec.aws.assumeRoleArn", "%q is no role: write it as arn:aws:iam::123456789012:role/name", document.Cut(a.AssumeRoleARN, 200))
	case account != a.AccountID && AccountID(a.AccountID):
		c.Fault("spec.aws.assumeRoleArn", "is a role of account %s, and accountId is %s", account, a.AccountID)
	}
}

func auth(c *document.Checker, a Auth) {
	const path = "spec.aws.auth"
	switch {
	case a.ServiceAccount != nil && a.Static != nil:
		c.Fault(path, "has serviceAccount and static; write one of them")
	case a.ServiceAccount == nil && a.Static == nil:
		c.Fault(path, "is empty; write serviceAccount: {} or static: {secretRef: {name: …}}")
	case a.Static != nil:
		name(c, path+".static.secretRef.name", a.Static.SecretRef.Name, "a Secret")
	}
}

// AccountID says whether a text is the number of an account.
func AccountID(s string) bool { return regexp.MustCompile(`^[0-9]{12}$`).MatchString(s) }

// region checks the form alone: which regions there are changes by the year.
func region(c *document.Checker, path, value string, needed bool) {
	switch {
	case value == "" && needed:
		c.Fault(path, "is missing, for example eu-central-1")
	case value != "" && !regexp.MustCompile(`^[a-z]{2,}(-[a-z]+)+-[0-9]{1,2}$`).MatchString(value):
		c.Fault(path, "%q is no region; write it as eu-central-1", document.Cut(value, 100))
	}
}

// RoleAccount is the account of a role by its ARN; without ok the text is none.
func RoleAccount(arn string) (account string, ok bool) {
	if !regexp.MustCompile(`^arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]{1,512}$`).MatchString(arn) {
		return "", false
	}
	return strings.Split(arn, ":")[4], true
}
