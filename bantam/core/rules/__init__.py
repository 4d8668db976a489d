"""May it run, may it go on, may it be seen: budgets, approval, the way of the key."""
