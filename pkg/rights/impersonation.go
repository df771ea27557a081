package rights

import "github.com/kubectl-maint/kubectl-maint/pkg/policy"

// ImpersonateOption is the option of `kubectl maint install` by which the agent may act as an
// account. The default account is allowed by every installation but one that is read-only.
func ImpersonateOption(account string) string {
	if account == policy.DefaultServiceAccount {
		return "--read-only=false"
	}
	return "--impersonate " + account
}
