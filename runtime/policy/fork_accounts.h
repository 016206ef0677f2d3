#ifndef MEMRT_POLICY_FORK_ACCOUNTS_H
#define MEMRT_POLICY_FORK_ACCOUNTS_H

/// Fork accounts: separate accounts for the blocks that a forked child got from its parent.
///
/// In the child, each policy and subpolicy with live blocks continues with a fresh account at a
/// fresh index. The old index, which the inherited blocks name, then leads to a fork subpolicy
/// (`fork_subpolicy`): a subpolicy of the policy, in the same scope, with the same settings and the
/// old account. Only a resize of an inherited block allocates from a fork subpolicy. The index in
/// the header thus marks inherited blocks without extra space, and frees count where they always
/// did. Policies and scopes keep their addresses; their sums include both accounts.
///
/// A fork subpolicy lives while a block of the subpolicy is live, or while callers know its policy
/// by the old index.

/// Split the accounts in a forked child. A policy without memory or a free index for the split
/// keeps one account, marked as mixed.
///
/// Threads: the only thread of the child, with no lock held.
void memrt__fork_accounts_forked(void);

#endif
